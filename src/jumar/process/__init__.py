"""The folder that starts processes of tasks: rooms, launching, limits, records, freezing, shell checks.

An `Invocation` and a `Confinement` enter; checked records and the end of the process leave. Imports `sandbox`, the
programs of `child` and the workspace's files.
"""
