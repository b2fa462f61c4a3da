"""`jumar doctor`: what works on this machine and in this folder, what does not, and how to mend it.

It asks the sandboxes, runners and settings of the other folders, and starts no interpreter of a repository.
"""
