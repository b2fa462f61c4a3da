"""Challenges of tests: what they compare is handed to us, which see whether an object may decide it.

Standard library only, Python 3.8 or newer.
"""
