"""The bridges to vitest and jest: node runs them, the `.mjs` and `.cjs` files report from inside.

Ids enter; one result per id, with who is to blame for a failure, leaves. Standard library and `jumar.child` only.
"""
