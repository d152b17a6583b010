"""Runs of realistic scrapes, for meaningful sizes."""

import numpy as np

from strandline.store.series_run import SeriesRun

TARGETS, INTERVAL, BEGIN = 100, 15_000, 1_790_000_000_000
SERIES_A_METRIC = 3 * TARGETS


def scraped_run(series: int, scrapes: int, *, seed: int = 1) -> SeriesRun:
    """Metrics of 100 targets, three series of each a target, scraped every 15 s.

    Of ten metrics four are counters that rise by Poisson numbers of means from 1 to 1,000, three are gauges with one to
    three digits that walk at random, one a gauge of whole numbers, and two never change. The scrapes of half of the
    targets are up to 2 ms early or late, and one scrape in 1,000 fails.
    """
    rng = np.random.default_rng(seed)
    target = np.arange(series) % TARGETS
    metric = np.arange(series) // SERIES_A_METRIC
    value = np.concatenate([_values(rng, int(at), int((metric == at).sum()), scrapes) for at in range(metric[-1] + 1)])
    late = rng.integers(-2, 3, (TARGETS, scrapes)) * (np.arange(TARGETS) % 2)[:, None]
    scraped_at = BEGIN + rng.integers(0, INTERVAL, (TARGETS, 1)) + INTERVAL * np.arange(scrapes) + late
    is_scraped = rng.random((TARGETS, scrapes)) >= 0.001
    is_scraped[:, 0] = True
    hashes = rng.integers(0, 2**64, (3, series), dtype=np.uint64)
    hashes[0] = np.sort(hashes[0])[metric * SERIES_A_METRIC]
    order = np.lexsort(hashes[::-1])
    kept = is_scraped[target[order]]
    first = np.zeros(series + 1, dtype=np.int64)
    np.cumsum(kept.sum(axis=1), out=first[1:])
    columns = [column[order] for column in hashes]
    return SeriesRun(*columns, first, scraped_at[target[order]][kept].astype(np.int64), value[order][kept])


def _values(rng: np.random.Generator, metric: int, series: int, scrapes: int) -> np.ndarray:
    shape = (series, scrapes)
    kind = metric % 10
    if kind < 4:
        means = 10 ** rng.uniform(0, 3, (series, 1))
        return rng.integers(0, 10**7, (series, 1)) + np.cumsum(rng.poisson(means, shape), axis=1).astype(float)
    if kind < 8:
        digits = kind - 4
        walk = np.cumsum(np.rint(rng.normal(0, 5, shape)), axis=1)
        return (rng.integers(0, 100 * 10**digits, (series, 1)) + walk) / 10**digits
    return np.repeat(rng.random((series, 1)) if kind == 8 else np.ones((series, 1)), scrapes, axis=1)
