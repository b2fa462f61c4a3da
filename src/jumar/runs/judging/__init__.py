"""Judges many runs of one machine: they share its cores, and no tree is judged twice by the same tests.

A verifier enters, and one that waits for its turn and asks the store of verdicts first leaves. It imports the ports.
"""
