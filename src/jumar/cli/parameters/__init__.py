"""Options and arguments that several commands share, and the one module that reads the environment.

Words of the command line enter; typed values leave.
"""
