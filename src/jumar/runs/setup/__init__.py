"""Settles everything that comes before a run's first event: sandbox, model, runner, folder, tests.

A `Task` enters; the parts of a run, and its first event, leave. `result.py` reads a result off a state.
"""
