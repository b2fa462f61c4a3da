"""The gate behind a host's own agent: the hook's slow half, its sessions, and `jumar claim` and `escalate`.

Events of a host enter, mostly through `jumar.child.hook`; rulings and a published state leave.
"""
