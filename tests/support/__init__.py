"""Helpers that are used by several test suites."""
