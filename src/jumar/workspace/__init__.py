"""The folder that an agent works in, as trees: captured, checked out, patched, merged, written back.

Paths enter; tree hashes leave, and the reverse. `files/` touches the disk safely, `store/` keeps bytes by hash.
"""
