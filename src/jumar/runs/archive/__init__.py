"""Runs on the disk: found by name, listed, compared, applied and removed.

A folder of runs enters; tables, patches and changed folders leave.
"""
