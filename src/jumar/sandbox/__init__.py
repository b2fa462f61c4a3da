"""Sandbox tiers: one file is one way to confine a process (S0 to S3).

A `Reach` (what must be seen) enters; the argv to start in place of the process leaves. It starts nothing itself.
"""
