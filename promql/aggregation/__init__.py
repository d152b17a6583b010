"""Aggregations over series. Blocks of series are folded into a state, states of several shards are merged, and the last
one is finished to a vector.

Samples of a block are not kept unless the aggregation needs them: sums, means, extremes and counts are a few numbers
for each group and step (`accumulator`), topk and bottomk keep candidates (`ranking`), quantile keeps the values
(`quantiles`), and count_values keeps each value once (`counting`). Results do not depend on how series were split,
but for the last bits of sums, and for which of equal values topk prefers.
"""
