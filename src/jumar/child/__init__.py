"""Programs for other processes: pytest's plug-ins, runner bridges, the supervisor, the sandbox's entry, the fast hook.

Each imports the standard library and `jumar.child`, nothing else, so that it runs in the interpreter of a task.
"""
