"""The trusted verifier: the only part of jumar that starts the processes of a task."""
