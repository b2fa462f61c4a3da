"""Scars: known faults in code, found by rules over syntax trees, and reported as lines, JSON or SARIF."""
