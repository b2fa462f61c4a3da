"""The programs inside a sandbox: the entry that locks its process in, and the probes that test the locks.

An order enters; the locked process starts, or findings of the probes leave. Standard library and `jumar.child` only.
"""
