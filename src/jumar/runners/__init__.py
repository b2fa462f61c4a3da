"""Adapters of test runners: one file is one runner, found by its module's name.

A `Suite` and ids enter; the `Invocation` of its program in `jumar.child`, and a report read from its records, leave.
A runner starts no process. Files that begin with `_` are shared by several runners.
"""
