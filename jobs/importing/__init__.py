"""Importing files into a dataset: the spec of such a job, its division into parts, and how a part is read.

In come the URIs of files and how their format is to be read, out come parts, and for each part the chunks of samples
that land in Kafka one after the other. It knows formats and sources, but neither Kafka nor who runs a part.
"""
