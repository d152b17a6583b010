"""What `strandline promql` does besides reading its command line: reports of test scripts and of plans.

In: texts and findings of the PromQL engine. Out: reports, which are both lines for people and JSON. No node is needed.
"""
