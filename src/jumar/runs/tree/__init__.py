"""The files that make up a task's tree, and those that each mode may edit.

A folder enters; paths and their hashes leave, with those that look missing or shadow a module.
"""
