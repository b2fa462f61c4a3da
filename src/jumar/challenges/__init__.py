"""Challenges: several agents on the same tasks, scored on tests, principles and scars, ranked and compared."""
