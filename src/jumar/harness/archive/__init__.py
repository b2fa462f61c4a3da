"""Runs that lie on the disk: found by name, listed, compared, applied, removed."""
