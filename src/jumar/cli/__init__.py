"""The command line: one module per command, which parses what a person chose and shows what came out.

Arguments enter; text or JSON and a documented exit code leave. It decides nothing. Nothing else imports it, except
that `hooks` and `mcp_server` share `console/` and `parameters/`.
"""
