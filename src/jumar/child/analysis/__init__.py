"""Programs that read sources of a task without running them: warnings, mutants, literals of tests.

Sources enter as configuration; records on the channel leave. Standard library and `jumar.child` only.
"""
