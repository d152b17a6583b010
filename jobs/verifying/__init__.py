"""Verifying a job that is done: what it has sent is read back and compared, values and not counts.

In come a job's parts and something that reads samples, or the messages of a topic; out come how much was compared, and
what is missing, different or can't be read yet. It knows neither HTTP nor where samples are stored.
"""
