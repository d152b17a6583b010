import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.store.merging import merge_runs
from strandline.store.series_run import SeriesRun
from support.series_runs import STALE, Model, are_same, model_of, models, run_of

pytestmark = pytest.mark.unit

# Few keys and times, so that runs meet.
MEETING = st.dictionaries(
    st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1)),
    st.dictionaries(st.integers(0, 12), st.integers(0, 2**64 - 1), min_size=1, max_size=6),
    max_size=5,
)


def merged(several: list[Model]) -> Model:
    result: dict = {}
    for model in several:
        for key, samples in model.items():
            result.setdefault(key, {}).update(samples)
    return result


@given(st.lists(MEETING | models(), max_size=4))
def test_merging_gives_every_sample_once_and_the_later_run_wins(several: list[Model]) -> None:
    runs = [run_of(model) for model in several]
    assert model_of(merge_runs(runs)) == merged(several)
    assert [model_of(run) for run in runs] == several


@pytest.mark.parametrize("runs", range(1, 10))
def test_precedence_holds_for_any_number_of_runs(runs: int) -> None:
    several = [{(1, 1, 1): {0: number, number + 1: number}} for number in range(runs)]
    samples = model_of(merge_runs([run_of(model) for model in several]))[(1, 1, 1)]
    assert samples[0] == runs - 1
    assert len(samples) == runs + 1


def test_nothing_merges_to_nothing_and_a_run_alone_stays_itself() -> None:
    run = run_of({(1, 2, 3): {4: 5}})
    assert len(merge_runs([])) == len(merge_runs([SeriesRun.empty(), SeriesRun.empty()])) == 0
    assert merge_runs([SeriesRun.empty(), run, SeriesRun.empty()]) is run


def test_series_that_differ_in_one_word_of_their_keys_stay_apart() -> None:
    keys = [(1, 1, 1), (1, 1, 2), (1, 2, 1), (2, 1, 1), (2**63, 1, 1), (2**64 - 1, 1, 1)]
    several = [{key: {0: number}} for number, key in enumerate(keys)]
    for order in (several, several[::-1]):
        assert model_of(merge_runs([run_of(model) for model in order])) == merged(several)


def test_a_run_merged_with_itself_is_itself_and_takes_no_more_memory() -> None:
    times = dict.fromkeys(range(1_000), STALE)
    run = run_of({(1, 1, key): times for key in range(20)})
    both = merge_runs([run, run])
    assert are_same(both, run)
    for column in (both.metric, both.first_sample, both.time, both.value):
        assert column.base is None


def test_halves_of_a_series_are_joined_in_either_order() -> None:
    samples = {time: time for time in range(-50, 50)}
    early = run_of({(1, 1, 1): {time: bits & (2**64 - 1) for time, bits in samples.items() if time < 0}})
    late = run_of({(1, 1, 1): {time: bits for time, bits in samples.items() if time >= 0}})
    for runs in ([early, late], [late, early]):
        both = merge_runs(runs)
        assert both.time.tolist() == sorted(samples)
        assert np.array_equal(both.value.view(np.int64), both.time)
