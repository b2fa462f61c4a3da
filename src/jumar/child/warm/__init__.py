"""The zygote: a process that has imported what tests need, and is forked into the processes of a verification.

`zygote_main.py` imports and waits, `become.py` makes a fork what a started program would be, `preload.py` imports.
Standard library, pytest and `jumar.child` only.
"""
