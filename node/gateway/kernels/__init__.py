"""Kernels of the gateway: finding and removing the series and samples of a request that are not accepted."""
