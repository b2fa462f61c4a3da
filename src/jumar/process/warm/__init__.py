"""Warm starts: processes of a verification that are forked from a zygote instead of being started.

`pool.py` decides which process can be forked and keeps the zygotes, `zygote.py` is the handle of one. The zygote itself
is `jumar.child.warm`.
"""
