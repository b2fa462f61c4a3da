"""The gate behind a host's own agent: the hook's slow half, its sessions, `jumar claim` and `jumar escalate`.

Events of a host enter, mostly through `jumar.child.hook`; rulings and a published state leave.
"""
