"""Programs that run in processes of their own: pytest's plug-ins, runner bridges, the supervisor, the sandbox's entry.

Each imports the standard library and `jumar.child`, nothing else of jumar, since it runs in the interpreter of a task
or in a sandbox that shows only this folder. `start.py` starts them, `channel.py` carries their records back.
"""
