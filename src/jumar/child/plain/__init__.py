"""Runs pytest as a person does: `python -m pytest` itself, of which we start nothing but plug-ins that report.

`plain_main.py` holds the channel and starts it; `plain_plugins.py` is what pytest loads.
"""
