"""External agents, run as supervised processes: their turns, requests and model proxy.

A command enters; the workspace as it left it, and what its model cost, leave.
"""
