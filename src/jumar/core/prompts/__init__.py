"""Texts for models: the task, feedback after a verdict, reviews, and the bounds of quotations.

A state enters; messages leave. Imports the core.
"""
