"""Writes runs in the formats of other tools, and whole runs as one file that anyone can audit.

Run directories enter; ATIF trajectories, SWE-bench predictions, OpenTelemetry spans, a JUnit report or a bundle leave.
It reads journals and object stores through `runs` and `corpus`, and starts nothing.
"""
