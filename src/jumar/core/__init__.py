"""The pure half: values in, values out. Nothing here reads a clock, a file, a socket or a random number.

`state/` is what a run knows, `gate/` which edits count, `run/` what happens next, `prompts/` what a model is told.
Imports the standard library's pure modules and msgspec, nothing else of jumar.
"""
