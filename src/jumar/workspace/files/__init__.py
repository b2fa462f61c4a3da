"""Files of a folder read and written without following a link or leaving the root.

A root and relative paths enter; bytes, modes and trees leave. Imports nothing of jumar but errors.
"""
