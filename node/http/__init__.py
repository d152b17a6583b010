"""HTTP, for the node and the gateway: the server with its limits, TLS and tokens; Prometheus' API; remote read.

In come connections, out go responses. `HttpServer` parses requests, checks limits, tokens and origins, and calls the
handler of a `Route`. Handlers turn a `Request` into queries (`strandline.node.query.queries.NodeQueries`) and the
answers into bytes. They must not decide which data belongs to an answer.
"""
