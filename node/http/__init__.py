"""HTTP, for the node and the gateway: the server with its limits, TLS and tokens; Prometheus' API; remote read.

Handlers turn requests into questions (`strandline.node.query`) and answers into bytes. They decide nothing about data.
"""
