"""Folds events into the state: one function per event, and the table of transitions that allows them.

A state and an event enter; the next state leaves. Replaying a journal is this and nothing else.
"""
