"""Configuration files and the order of precedence among flags, environment, task, project and person.

Files of TOML enter; checked tables leave. An unknown key is refused with the nearest known one.
"""
