"""From a checked expression to a plan: durations, `@`, `offset` and subqueries become absolute moments, parts that
do not depend on the step are evaluated once, and what can be evaluated where the samples are becomes fragments.
"""
