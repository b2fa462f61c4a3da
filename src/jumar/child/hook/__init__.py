"""The fast hook: rules on one tool call of a host in milliseconds, or hands it to `jumar.hooks`.

The host's event enters on standard input; an answer leaves on standard output. What it does not understand it blocks.
Standard library and `jumar.child` only, since loading jumar would take longer than a hook may.
"""
