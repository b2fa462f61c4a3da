"""Runs the rollouts of a campaign on other machines: as tasks of a Ray cluster.

A campaign enters, and workers that it can give rollouts to leave. Ray is imported where it is used, and only there.
"""
