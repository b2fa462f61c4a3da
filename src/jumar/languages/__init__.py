"""Knowledge of source languages: grammars, outlines, encodings, gitignore globs, places of tests in a file.

Bytes or text enter; positions, names and outlines leave. No process is started. Imports `ports` and the core.
"""
