"""The supervisor of a confined process: watches its memory, output and time, and kills all that it started.

An order enters; the reason of the end and what was used leave. Standard library and `jumar.child` only.
"""
