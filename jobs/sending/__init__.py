"""Sending series to another topic: one message for each series that a selector matches at a moment.

In come a selector, a moment and a template, out come messages in a Kafka topic, each exactly once, and a list of the
series that a control sample leaves out. Parts are ranges of the key hash. Where series come from stands behind a small
protocol (`series.py`); it knows neither HTTP nor who runs a part.
"""
