"""Arithmetic of rankings: scores of runs, the agents by their composites, and paired comparisons; no files."""
