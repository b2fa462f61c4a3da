"""Falsifies tests of a suite by editing their sources, so that a forged pass shows itself.

Sources and ids enter; edited sources and the ids that must now fail leave. Pure; imports nothing of jumar but itself.
"""
