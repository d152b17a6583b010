"""Aggregations over series. An accumulator folds blocks of series into a state, states of several shards are merged,
and the merged state is finished to a vector.

A state holds only what the aggregation needs: a few numbers for each group and step for sums, averages, extremes,
counts and variances (`folding`), candidate series for topk and bottomk (`ranking`), all values for quantile
(`quantiles`), and the count of each distinct value for count_values (`counting`). `spec` is the aggregation itself.
Results do not depend on how the series are split into blocks and shards, except for the last bits of sums.

It must not know plans or shards.
"""
