"""The bridge to `go test`: runs it once for all asked ids and reports one result per id.

Standard library and `jumar.child` only; runs in the sandbox, beside the task's toolchain.
"""
