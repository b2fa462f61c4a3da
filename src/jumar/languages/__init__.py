"""Knowledge of source languages: grammars, outlines, encodings, gitignore globs, where tests stand in a file.

Bytes or text enter; positions, names and outlines leave. No process is started. Imports `ports` and the core.
"""
