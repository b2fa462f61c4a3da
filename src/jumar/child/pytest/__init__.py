"""The pytest plug-ins: they report each test, watch the framework for tampering, and assign blame for failures.

Ids enter as configuration; records on the channel leave. `pytest_main.py` starts pytest before the code under test
can be seen. Standard library, pytest and `jumar.child` only.
"""
