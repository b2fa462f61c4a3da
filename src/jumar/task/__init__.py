"""A task, resolved before anything runs: its files, suite, options, routes and caps.

Options and configuration files enter; a frozen `Task` leaves, or one sentence on what is wrong.
"""
