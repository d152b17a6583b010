"""Helpers that several test suites share."""
