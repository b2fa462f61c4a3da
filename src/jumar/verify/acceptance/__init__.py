"""Accepts a green, or refutes it, by fresh runs that nobody can foresee, and grades its tests.

`accept_green.py` leads; `rounds.py` runs one round, `untouched_tree.py` the tree of the task, `evidence.py` weighs.
"""
