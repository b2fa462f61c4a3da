"""Frames that lead to a test: who asks for one, and those that functions in C hand out."""
