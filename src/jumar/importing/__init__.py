"""Tasks from existing sources: git histories, releases with known bugs, each validated before it is kept.

A repository or a package enters; a task folder that is red without its fix and green with it leaves.
"""
