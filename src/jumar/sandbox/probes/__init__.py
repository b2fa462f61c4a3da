"""The self-test of a sandbox: the probes that it must withstand, the decoys, and when to test again.

A sandbox enters; what was possible in it leaves, from which its tier follows.
"""
