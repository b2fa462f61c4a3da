"""The files that make up a task's tree, and what may be edited in them by mode.

A folder enters; paths and their hashes leave, with those that look missing or shadow a module.
"""
