"""The life of a run: it is started, resumed, scored, or held open for a host that acts in it.

A task and options enter; a journal and a `Result` leave. Puts together what the lower folders do; only the command
line, hooks, MCP and the public functions import it.
"""
