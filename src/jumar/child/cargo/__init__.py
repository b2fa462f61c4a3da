"""The bridge to cargo: builds once, runs each test binary, and reports one result per asked id.

Standard library and `jumar.child` only; runs in the sandbox, beside the task's toolchain.
"""
