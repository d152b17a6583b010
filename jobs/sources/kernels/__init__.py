"""Compiled loops over the bytes of sources."""
