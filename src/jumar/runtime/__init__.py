"""Performs effects: writes, verifies, reads, keeps and reverts, as the core decided.

An effect enters; the events that tell what happened leave. Imports `verify`'s port, the workspace and the core.
"""
