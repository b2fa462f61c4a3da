"""Bridges for commands: a test command, one command per test, JUnit files, shell checks, an external agent.

An exit status or a report file enters; records on the channel leave. Standard library and `jumar.child` only.
"""
