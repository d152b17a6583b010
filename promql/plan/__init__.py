"""Plans of queries.

In: a type-checked expression and the times of the query (`query_times`). Out: fragments, which shards evaluate
(`fragments`), and the rest of the plan (`nodes`), which the front evaluates over their results.

`planning` resolves durations, `@`, `offset` and subqueries to absolute times, and evaluates parts that do not depend on
the step only once (`invariance`). `narrowing` pushes matchers to the right sides of `and` and `unless`. `splitting`
moves as much of the plan as possible into fragments. `fragment_codec` encodes fragments for the connection to shards,
and `explaining` describes a plan for users.

It must not know series or samples: a plan depends only on the expression and the times.
"""
