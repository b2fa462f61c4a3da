"""`jumar mcp`: the gate as an MCP server, over standard input and output or HTTP.

Tool calls of a host enter; each is one action of a run, and its ruling leaves. Imports `runs` and `cli/console`.
"""
