"""Output for people: the status line, notices, coloured patches, and the end by a signal.

Values enter; text on standard output (results) and standard error (progress) leaves.
"""
