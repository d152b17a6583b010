"""Compiled loops over samples, windows and groups."""
