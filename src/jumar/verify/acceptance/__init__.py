"""Acceptance of a green: fresh runs in two processes or under challenge, and the grade of each test.

A green verification enters; the same with grades and warnings leaves, or one that is void or flaky.
"""
