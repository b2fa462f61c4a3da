"""Texts for models: the task, feedback after a verdict, reviews, and the bounds on what is quoted.

A state enters; messages leave. Imports the core.
"""
