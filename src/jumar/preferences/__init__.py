"""Turns rollouts into preference pairs, unpaired examples and demonstrations, as trainers read them.

Run directories enter; a file of examples and its data card leave. Every rollout is used or left out for one counted
reason. It reads journals and object stores through `runs`, and starts nothing.
"""
