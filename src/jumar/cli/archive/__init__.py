"""Commands on runs of the past: `runs`, `log`, `diff`, `apply`, `clean`.

They read journals and results through `jumar.runs.archive`, and show them.
"""
