"""The course of a run: the next effect, strategies, retries, stalls, planning and the raising of caps.

A state enters; the next effect, or a reason to stop, leaves. `reducers/` folds what happened back into the state.
"""
