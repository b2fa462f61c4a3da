"""Shell commands that no agent may run: tables of programs, wrappers, downloads, and the parser over them.

A command line enters; `Forbidden` with its reason, or nothing, leaves. It is a guardrail, not a guarantee: the sandbox
holds where it does not. Imports the core and `child.hook.deploy_table`.
"""
