"""Fault localisation: lines that red tests run and green ones do not.

The coverage of one traced run enters; suspicious lines, ranked, leave. Nothing here judges.
"""
