"""Runs pytest as a person does: `python -m pytest` itself, of which we start nothing but a plug-in that reports.

`plain_main.py` holds the channel and starts it; `jumar_reports.py` is what pytest loads.
"""
