"""Kernels of queries: keys in the order of their labels, and two sorted lists into one."""
