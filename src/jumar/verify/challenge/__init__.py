"""Challenges of a suite: files in which tests are falsified."""
