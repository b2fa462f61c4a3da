"""The object store: bytes named by their sha256, shared by runs, swept when no run needs them.

Bytes or folders enter; hashes leave. What was named is on the disk before the call returns.
"""
