"""Queries of dashboards and rules in formatted form: each is parsed, and printed unchanged."""

import pytest

from strandline.promql.parser import parse
from strandline.promql.printing import print_expression

pytestmark = pytest.mark.unit

SELECTORS = r"""
up
up{job="node"}
{__name__=~"node_.+",mode!="idle"}
{"service.name"="a b",__name__="http.server.duration"}
http_requests_total{code=~"5..|429",method!~"GET|HEAD"}
job:requests:rate5m{cluster=""}
logins_total{path="C:\\x\n\"quoted\""}
up{instance=~"(?i)web-[0-9]+\\.example:9100"}
on_hand{group_left="a",offset="b"}
"""
TIMES = """
up offset 5m
up offset -1h
up @ 1700000000.000
up @ start() offset 1d
rate(c_total[5m] @ end())
rate(c_total[5m] @ 1700000000.500 offset -15s)
max_over_time(rate(c_total[5m])[1h:1m] @ start() offset 1w)
sum_over_time(g[step()])
rate(c_total[max_of(5m, step() * 4)])
avg_over_time(g[range() / 10:step()])
g offset (1h + 30m)
g offset -(step() * 2)
"""
RANGES = """
rate(c_total[1m])
irate(c_total{job="a"}[2m])
increase(c_total[1d])
delta(g[1h30m])
deriv(g[15m])
predict_linear(node_filesystem_avail_bytes[6h], 14400)
quantile_over_time(0.95, g[1h])
absent_over_time(up{job="x"}[10m])
changes(g[1h]) + resets(c_total[1h])
count_over_time(up[1h:])
last_over_time(g[500ms])
stddev_over_time((a - b)[30m:1m])
max_over_time(min_over_time(g[5m])[1h:5m])
"""
AGGREGATIONS = """
sum(up)
sum by (job) (rate(c_total[5m]))
avg without (instance, pod) (g)
count(count by (instance) (up))
topk(5, sum by (handler) (rate(c_total[5m])))
bottomk by (zone) (1, g)
quantile(0.5, g)
count_values("version", build_info)
group by ("service.name") (up)
stddev by (on, by, bool) (g)
max(g) - min(g)
stdvar without () (g)
"""
OPERATORS = """
a + b
-a
1 - -a
-(a + b) * 2
2 ^ 3 ^ 2
a % 10 == 0
a > 5 and b < 3
a or vector(0)
a unless on (job) b
up == bool 1
1 == bool 2
a / on (job) group_left () b
errors_total / ignoring (code) group_left (owner) requests_total
c * on (instance) group_right (version) build_info
a > bool ignoring (x) b
a atan2 b
sum by (job) (rate(errors_total[5m])) / sum by (job) (rate(requests_total[5m])) > 0.05
(a + b) / (c - d)
100 * (1 - avg by (instance) (rate(cpu_seconds_total{mode="idle"}[5m])))
a >= b != c
a </ 5
"""
FUNCTIONS = r"""
abs(g)
absent(up{job="x"})
clamp(g, 0, 100)
clamp_min(clamp_max(g, 1), 0)
round(g, 0.5)
round(g)
histogram_quantile(0.99, sum by (le, job) (rate(latency_bucket[5m])))
histogram_fraction(0, 0.2, rate(latency_seconds[1h]))
histogram_avg(rate(latency_seconds[5m]))
label_replace(up, "host", "$1", "instance", "(.*):.*")
label_join(up, "id", "-", "job", "instance")
label_join(up, "empty", ",")
sort_desc(topk(3, g))
scalar(sum(g)) * 2
vector(time())
time() - timestamp(up)
hour() > 8 and hour() < 18
day_of_week(vector(1700000000))
days_in_month()
ln(exp(g)) + log2(g) + log10(g)
sgn(sin(g) + cos(g) - tanh(g))
deg(rad(g)) / pi()
floor(sqrt(ceil(g)))
"""
LITERALS = r"""
0
1.5
-0.001
+Inf
NaN
5m
1h30m + 15
"text"
"tab\tand ünïcode\x00"
"""


@pytest.mark.parametrize(
    "query",
    [
        query
        for group in (SELECTORS, TIMES, RANGES, AGGREGATIONS, OPERATORS, FUNCTIONS, LITERALS)
        for query in group.strip().splitlines()
    ],
)
def test_everyday_queries_are_printed_unchanged(query):
    assert print_expression(parse(query)) == query


@pytest.mark.parametrize(
    ("query", "printed"),
    [
        ("sum by(job)(rate(c_total[5m]))#total", "sum by (job) (rate(c_total[5m]))"),
        ("\n sum(\n  a # first\n  ,\n)".replace(",\n", ""), "sum(a)"),
        ("SUM(a)wIThout(b)", "sum without (b) (a)"),
        ("a\tAnD\rb", "a and b"),
        ("1+2*3", "1 + 2 * 3"),
        ("a>bool-1", "a > bool -1"),
        ("sum{a='b'}+by", 'sum{a="b"} + by'),
        ("step+range+start+end+max_of", "step + range + start + end + max_of"),
        ("fill+fill_left", "fill + fill_left"),
        ("{'a'}[5m]offset-5m@+1.5e9", '{__name__="a"}[5m] @ 1500000000.000 offset -5m'),
        ("rate(a[5m:#x\n1m])", "rate(a[5m:1m])"),
        ("a offset 0s offset 5m", "a offset 5m"),
    ],
)
def test_unusual_notations_are_accepted(query, printed):
    assert print_expression(parse(query)) == printed
