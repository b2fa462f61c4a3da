"""Processes that are kept for many orders: started like any other, and reused while nothing is left behind.

An order enters; an answer or a refusal leaves. After a refusal the process is gone.
"""
