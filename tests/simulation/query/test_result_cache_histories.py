"""Random histories: answers of shards with a result cache equal those of shards without one, over the same samples."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.promql.values import STALE
from support.cached_results import cache_comparison, ending
from support.query_worlds import LuceneWorld
from support.shard_world import HOUR, MINUTE

pytestmark = pytest.mark.simulation

QUERIES = (
    "m0",
    "m1 offset 13m",
    "-m0 * 2",
    '{__name__=~"m.*"} > 2',
    'last_over_time({__name__=~"m.*"}[20m])',
    'rate({__name__=~"m.*"}[20m])',
    "timestamp(m0)",
    "predict_linear(m0[20m] offset 10m, 600)",
    "sum(rate(m0[20m]))",
    "sum by (name) (increase(m1[20m]))",
    "avg without (name) (m0)",
    "min by (name) (m0)",
    "max(m1)",
    "count(m0)",
    "group by (name) (m1)",
    "stddev(m0)",
    "topk(2, m0)",
    "bottomk by (name) (1, m1)",
    "quantile by (name) (0.5, m0)",
    "quantile(2, m1)",
    "quantile_over_time(3, m0[10m])",
    "sum(quantile_over_time(3, m1[10m]))",
    'count_values("v", m0)',
    "m0 + on (name) m1",
    "sum(m0) / count(m0)",
    "max_over_time(sum(m0)[30m:5m])",
    "m0 > time() - 100",
    "sum(m0 @ end())",
    "absent(m0)",
)


class ShardEvents:
    """The random events of one shard."""

    def __init__(self, world: LuceneWorld, draw: random.Random) -> None:
        self.world, self.draw = world, draw

    def add_random_event(self) -> None:
        kinds: list[Callable[[], None]] = [
            self.scrape,
            self.scrape,
            self.scrape,
            self.late_samples,
            self.overwrite,
            self.stale_markers,
            self.new_series,
            self.store_some,
            self.store_some,
            self.store_all,
            self.an_hour_passes,
        ]
        self.draw.choice(kinds)()
        self.world.read_all()

    def scrape(self) -> None:
        now = self.world.clock.now_ms()
        self.world.produce(*((metric, f"s{name}", now, self.value()) for metric in ("m0", "m1") for name in range(4)))

    def late_samples(self) -> None:
        now = self.world.clock.now_ms()
        for _ in range(self.draw.randrange(1, 4)):
            late = now - self.draw.randrange(90) * MINUTE
            self.world.produce((f"m{self.draw.randrange(2)}", f"s{self.draw.randrange(6)}", late, 7.0))

    def overwrite(self) -> None:
        samples = [sample for record in self.world.produced[-8:] for sample in record.samples]
        if samples:
            (metric, name), time, _ = self.draw.choice(samples)
            self.world.produce((metric, name, time, self.value()))

    def stale_markers(self) -> None:
        now = self.world.clock.now_ms()
        self.world.produce(("m0", f"s{self.draw.randrange(4)}", now, float(STALE)))

    def new_series(self) -> None:
        begun = self.world.clock.now_ms() - 20 * MINUTE
        self.world.produce((f"m{self.draw.randrange(2)}", f"n{self.draw.randrange(99)}", begun, self.value()))

    def store_some(self) -> None:
        self.world.read_all()
        self.world.store_due(most=self.draw.randrange(1, 5))

    def store_all(self) -> None:
        self.world.settle()

    def an_hour_passes(self) -> None:
        self.world.pass_time(HOUR)

    def value(self) -> float:
        return float(self.draw.randrange(-3, 9))


@pytest.mark.parametrize("shards", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_cached_results_equal_new_ones(tmp_path: Path, seed: int, shards: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - reproducible
    seal_rows = draw.choice([3, 40, 1000])
    with cache_comparison(tmp_path, shards, seal_rows=seal_rows, groups=draw.choice([1, 4])) as both:
        worlds = both.node.worlds
        histories = [ShardEvents(world, draw) for world in worlds]
        panels = draw.sample(QUERIES, 8)
        for _ in range(25):
            for history in histories:
                history.add_random_event()
            minutes = draw.choice([0, 1, 3, 6])
            for world in worlds:
                world.pass_time(minutes * MINUTE)
                world.read_all()
            now = max(world.clock.now_ms() for world in worlds) + draw.choice([0, 0, -7 * MINUTE, 10 * MINUTE])
            gone = draw.randrange(shards) if shards > 1 and draw.random() < 0.1 else None
            client = both.node.clients.pop(gone) if gone is not None else None
            for text in draw.sample(panels, 3):
                both.check(text, ending(now, steps=draw.choice([12, 12, 12, 13, 30])))
            if gone is not None and client is not None:
                both.node.clients[gone] = client
        figures = both.figures
        assert figures.hits + figures.partial_hits > 0
        assert figures.misses > 0
