"""Ways to a completion: one file per kind of model, found by its name before the colon of `--model`.

A `Request` enters; a `Reply` with its cost leaves. `wire/` speaks the formats of providers. Imports `repair` for the
offline proposer, `ports` and the core.
"""
