"""Programs that run in processes of their own: pytest's plug-ins, runner bridges, the supervisor, the sandbox's entry.

Each imports the standard library and `jumar.child`, nothing else of jumar, since it runs in the interpreter of a task
or in a sandbox that shows only this folder. `analysis/`, `pytest/`, `screening/` and `two_process/` run in the
interpreter of a task: they, and what they import of the others, keep to Python 3.8. `start.py` starts them, and
`channel.py` carries their records back.
"""
