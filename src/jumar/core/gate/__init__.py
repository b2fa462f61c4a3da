"""The rules of the gate: which edit is admitted before it is made, and which survives the verdict on a turn.

A state and an edit or a verdict enter; a decision with its reason leaves. Imports `core/state`.
"""
