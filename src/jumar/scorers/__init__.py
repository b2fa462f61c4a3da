"""Scorers: one folder for each axis on which the work of agents is compared."""
