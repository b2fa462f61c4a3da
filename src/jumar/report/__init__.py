"""The report on runs: reads their journals, adds them up, and shows them as one page and as lines of text.

It decides nothing: whatever it shows follows from the journals, and can be read again at any time.
"""
