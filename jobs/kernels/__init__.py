"""Compiled code that all kinds of jobs share."""
