"""Strategies that turn the state of a run into a request for a model, and a model's reply into actions.

They are pure: a `RunState` enters, a `Request` or `Action`s leave, and nothing is performed here. `extraction/` reads
files from prose, `tools/` describes and decodes tool calls. Imports the core, `languages` and `ports`.
"""
