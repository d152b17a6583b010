"""What holds for requests to a node, with its shards in this process or through the link."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strandline.clock import wait_until
from strandline.index.cardinality import LabelCardinality
from strandline.index.matchers import InvalidMatcher, Matcher, MatcherTooCostly, MatchOp
from strandline.node.query.answers import NO_SAMPLE, KeyPageAnswer, SeriesAnswer, SeriesCount
from strandline.node.query.queries import QueryTimedOut, QueryTooLarge, QueryUnavailable
from strandline.node.query.shard_requests import (
    BucketsRequest,
    CardinalityRequest,
    KeyPageRequest,
    LabelNamesRequest,
    LabelValuesRequest,
    SamplesRequest,
    SeriesRequest,
)
from strandline.node.shard.status import Phase
from strandline.node.status.processes import ProcessState, ShardProcessStatus
from strandline.time_range import ALL_TIMES, TimeRange
from support.links import CLOCK
from support.query_worlds import (
    CountingLink,
    NodeWorld,
    expected_samples,
    labels_of,
    names_of,
    node_world,
    samples_of,
    selector,
    written,
)
from support.shard_world import HOUR, MINUTE

pytestmark = pytest.mark.contract

EVERY = (Matcher("__name__", MatchOp.MATCH, ".+"),)


@pytest.fixture(params=["in this process", "through the link", "through the link and beside it"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NodeWorld]:
    """With the link, the JVMs of the shards answer lookups once this is enabled."""
    linked, publishes = request.param != "in this process", "beside" in request.param
    with node_world(tmp_path, shards=2, linked=linked, publishes=publishes) as made:
        yield made


@pytest.fixture
def filled(node: NodeWorld) -> NodeWorld:
    """Samples of some series in both shards: stored, closed and in memory."""
    for hour in range(3):
        for number, world in enumerate(node.worlds):
            now = world.clock.now_ms()
            world.produce(
                *((f"m{metric}", "both", now + shift, float(hour)) for metric in range(4) for shift in (0, 1000)),
                (f"m{number}", f"only-{number}", now, float(10 * number + hour)),
            )
            world.settle()
            if hour < 2:
                world.pass_hours(1)
    return node


def test_samples_of_all_shards_and_places_are_found_once(filled: NodeWorld) -> None:
    answer = filled.request(SamplesRequest(EVERY, ALL_TIMES, 100, 1000))
    assert samples_of(answer) == expected_samples(filled.worlds)
    assert answer.warnings == ()


def test_samples_are_filtered_by_selector_and_range(filled: NodeWorld) -> None:
    start = min(record.time for record in filled.worlds[0].produced)
    times = TimeRange(start + 500, start + HOUR + 5 * MINUTE)
    answer = filled.request(SamplesRequest(selector('{name=~"only.*"}'), times, 100, 1000))
    names = {("m0", "only-0"): 0, ("m1", "only-1"): 0}
    assert samples_of(answer) == expected_samples(filled.worlds, times, names)
    nothing = filled.request(SamplesRequest(selector("nobody"), times, 100, 1000))
    assert (len(nothing.keys), nothing.first_sample.tolist(), len(nothing.time)) == (0, [0], 0)


def test_where_two_shards_have_a_sample_at_one_time_the_higher_one_wins(node: NodeWorld) -> None:
    now = node.worlds[0].clock.now_ms()
    for number, world in enumerate(node.worlds):
        world.produce(("m", "a", now, float(number)), ("m", "a", now + 1 + number, 5.0))
        world.settle()
    answer = node.request(SamplesRequest(EVERY, ALL_TIMES, 10, 10))
    assert samples_of(answer) == {("m", "a"): [(now, 1.0), (now + 1, 5.0), (now + 2, 5.0)]}


def test_each_series_is_returned_once_in_label_order(filled: NodeWorld) -> None:
    answer = filled.request(SeriesRequest((EVERY,), None, 100))
    found = labels_of(answer.keys)
    assert found == sorted(found)
    assert set(names_of(answer.keys)) == set(expected_samples(filled.worlds))
    assert len(found) == len(set(found))
    assert not answer.more


def test_several_selectors_select_their_union(filled: NodeWorld) -> None:
    request = SeriesRequest((selector("m0"), selector('{name="only-1"}'), selector('m0{name="both"}')), None, 100)
    answer = filled.request(request)
    assert names_of(answer.keys) == [("m0", "both"), ("m0", "only-0"), ("m1", "only-1")]


def test_no_selector_means_every_series(filled: NodeWorld) -> None:
    answer = filled.request(SeriesRequest((), None, 100))
    assert set(names_of(answer.keys)) == set(expected_samples(filled.worlds))


def test_series_are_truncated_at_the_limit_with_a_flag(filled: NodeWorld) -> None:
    answer = filled.request(SeriesRequest((EVERY,), None, 3))
    assert (len(answer.keys), answer.more) == (3, True)


_LAST = 2**64 - 1


def pages(node: NodeWorld, within: TimeRange, limit: int, *, newest: bool = True) -> list[KeyPageAnswer]:
    """All series, page by page."""
    found: list[KeyPageAnswer] = []
    first = (0, 0)
    while True:
        page: KeyPageAnswer = node.request(KeyPageRequest((EVERY,), within, first, (_LAST, _LAST), limit, newest, 1000))
        found.append(page)
        if not page.more:
            return found
        first = (int(page.low[-1]), int(page.high[-1]) + 1)


def test_series_come_page_by_page_in_the_order_of_their_hashes_each_once(filled: NodeWorld) -> None:
    for limit in (1, 2, 4, 100):
        check_pages(filled, pages(filled, ALL_TIMES, limit), limit)


def check_pages(filled: NodeWorld, found: list[KeyPageAnswer], limit: int) -> None:
    hashes = [key_hash for page in found for key_hash in zip(page.low.tolist(), page.high.tolist(), strict=True)]
    assert hashes == sorted(set(hashes))
    assert all(len(page.keys) == limit for page in found[:-1])
    names = [name for page in found for name in names_of(page.keys)]
    expected = expected_samples(filled.worlds)
    assert len(names) == len(expected)
    times = [span for page in found for span in zip(page.start.tolist(), page.end.tolist(), strict=True)]
    newest = [sample for page in found for sample in zip(page.time.tolist(), page.value.tolist(), strict=True)]
    by_name = dict(zip(names, zip(times, newest, strict=True), strict=True))
    assert by_name == {name: ((samples[0][0], samples[-1][0]), samples[-1]) for name, samples in expected.items()}


def test_a_page_has_series_with_samples_around_a_range_and_the_newest_within_it(node: NodeWorld) -> None:
    now = node.worlds[0].clock.now_ms()
    node.worlds[0].produce(("m", "old", now, 1.0), ("m", "both", now, 2.0), ("m", "both", now + 9, 3.0))
    node.worlds[1].produce(("m", "new", now + 9, 4.0), ("m", "both", now + 5, 5.0))
    for world in node.worlds:
        world.settle()
    (page,) = pages(node, TimeRange(now + 1, now + 6), 10)
    assert (names_of(page.keys), page.time.tolist(), page.value.tolist()) == ([("m", "both")], [now + 5], [5.0])
    (page,) = pages(node, TimeRange(now + 1, now + 6), 10, newest=False)
    assert (names_of(page.keys), page.time.tolist()) == ([("m", "both")], [NO_SAMPLE])


def test_names_and_values_are_merged_with_their_counts(filled: NodeWorld) -> None:
    names = filled.request(LabelNamesRequest((), None, 10))
    assert (names.terms(), names.counts.tolist()) == (["__name__", "name"], [10, 10])
    values = filled.request(LabelValuesRequest("name", (), None, 10))
    assert (values.terms(), values.counts.tolist()) == (["both", "only-0", "only-1"], [8, 1, 1])
    some = filled.request(LabelValuesRequest("name", (selector("m1"),), None, 10))
    assert (some.terms(), some.counts.tolist()) == (["both", "only-1"], [2, 1])
    assert filled.request(LabelValuesRequest("none", (), None, 10)).terms() == []


def test_a_truncated_list_is_flagged_and_its_counts_are_complete(filled: NodeWorld) -> None:
    values = filled.request(LabelValuesRequest("name", (), None, 1))
    assert (values.terms(), values.counts.tolist(), values.more) == (["both"], [8], True)
    metrics = filled.request(LabelValuesRequest("__name__", (), None, 3))
    assert (metrics.terms(), metrics.counts.tolist(), metrics.more) == (["m0", "m1", "m2"], [3, 3, 2], True)


def test_keys_and_values_are_filtered_by_the_range(filled: NodeWorld) -> None:
    later = TimeRange(filled.worlds[0].clock.now_ms() + HOUR)
    past = TimeRange(0, min(record.time for record in filled.worlds[0].produced) - 1)
    for within, exists in ((later, True), (past, False)):
        assert bool(len(filled.request(SeriesRequest((EVERY,), within, 9)).keys)) is exists
        assert bool(filled.request(LabelValuesRequest("name", (), within, 9)).terms()) is exists


def test_cardinality_is_that_of_all_shards(filled: NodeWorld) -> None:
    """Four series are in both shards, as after partitions were added, and count once."""
    answer = filled.request(CardinalityRequest((), None, 2, label="name"))
    assert answer.series == 6
    assert answer.labels == (LabelCardinality("__name__", 4, 6, 8), LabelCardinality("name", 3, 6, 16))
    assert [(entry.value, entry.series) for entry in answer.top_metrics_by_series] == [("m0", 2), ("m1", 2)]
    assert [(entry.value, entry.series) for entry in answer.top_values_by_series] == [("both", 4), ("only-0", 1)]
    assert [(entry.value, entry.series) for entry in answer.top_pairs_by_series] == [("both", 4), ("m0", 2)]
    assert answer.is_exact
    few = filled.request(CardinalityRequest((selector("m1"),), None, 9))
    assert (few.series, few.top_values_by_series) == (2, ())
    assert few.labels == (LabelCardinality("__name__", 1, 2, 2), LabelCardinality("name", 2, 2, 10))


def test_samples_are_estimated_from_groups_and_buffers(filled: NodeWorld) -> None:
    """Stored, closed and in memory. A sample in two shards counts twice, as both would read it."""
    opened, an_hour = filled.worlds[0].running.bucket, 2 * 9

    def estimated(within: TimeRange | None, *metric: str) -> int | None:
        return filled.request(CardinalityRequest(tuple(map(selector, metric)), within, 1, samples=True)).samples

    assert filled.request(CardinalityRequest((), None, 1)).samples is None, "only on request"
    assert estimated(None) == estimated(ALL_TIMES) == 3 * an_hour
    assert estimated(TimeRange(0, 1)) == 0
    assert estimated(TimeRange(opened * HOUR, (opened + 1) * HOUR)) == an_hour
    assert estimated(None, "none") == 0
    # Two series of two shards have two samples an hour. Others in their groups have one.
    samples = estimated(None, "m2")
    assert samples is not None
    assert 8 <= samples <= 12


def test_a_node_with_little_memory_returns_flagged_estimates(filled: NodeWorld) -> None:
    """An eighth of 500 bytes is too small for the hashes of five series of each shard, and for all values."""
    assert filled.count_series(()) == SeriesCount(6)
    assert filled.count_series((selector("m1"),)) == SeriesCount(2)
    filled.memory.limit = 500
    counted, answer = filled.count_series(()), filled.request(CardinalityRequest((), None, 2))
    assert 5 <= counted.series <= 10
    assert (counted.is_exact, answer.estimated_series, answer.series) == (False, True, counted.series)
    assert answer.estimated_labels == ("__name__", "name")
    assert [(label.name, label.values) for label in answer.labels] == [("__name__", 4), ("name", 3)]


def test_buckets_have_their_counts(filled: NodeWorld) -> None:
    answer = filled.request(BucketsRequest(None, 100))
    opened = filled.worlds[0].running.bucket
    figures = {(entry.bucket - opened, entry.shard): entry for entry in answer.buckets}
    assert [(bucket.bucket, bucket.shard) for bucket in answer.buckets] == sorted(
        (bucket.bucket, bucket.shard) for bucket in answer.buckets
    )
    for shard in (0, 1):
        stored, current = figures[-1, shard], figures[0, shard]
        assert (stored.state, stored.active, stored.samples, stored.bytes) == ("stored", 5, 9, 0)
        assert (current.state, current.active, current.samples) == ("open", 5, 9)
        assert (current.start, current.end) == (opened * HOUR, (opened + 1) * HOUR)
    assert {bucket.bucket for bucket in filled.request(BucketsRequest(None, 1)).buckets} == {opened}
    within = TimeRange(opened * HOUR - HOUR, opened * HOUR - 1)
    assert {bucket.bucket for bucket in filled.request(BucketsRequest(within, 9)).buckets} == {opened - 1}


def test_limits_of_series_and_samples_hold_over_all_shards(filled: NodeWorld) -> None:
    expected = expected_samples(filled.worlds)
    series, samples = len(expected), sum(map(len, expected.values()))
    for max_series, max_samples, named in ((series - 1, samples, "series"), (series, samples - 1, "samples")):
        with pytest.raises(QueryTooLarge) as caught:
            filled.request(SamplesRequest(EVERY, ALL_TIMES, max_series, max_samples))
        assert named in caught.value.message
        found = {"series": series, "samples": samples}[named]
        assert f" {found} {named}" in caught.value.message
        assert f"query.max_{named}" in caught.value.remedy
    assert len(filled.request(SamplesRequest(EVERY, ALL_TIMES, series, samples)).keys) == series


def test_a_refusal_names_the_series_of_all_shards_even_if_one_alone_has_too_many(filled: NodeWorld) -> None:
    with pytest.raises(QueryTooLarge, match="matches 6 series, and a query may read samples of 1"):
        filled.request(SamplesRequest(EVERY, ALL_TIMES, 1, 1000))


def test_a_refusal_for_samples_of_one_shard_states_that_there_may_be_more(filled: NodeWorld) -> None:
    with pytest.raises(QueryTooLarge, match=r"reads at least \d+ samples, and 5 are allowed"):
        filled.request(SamplesRequest(EVERY, ALL_TIMES, 100, 5))


def test_expressions_that_are_refused_arrive_as_they_were_raised(filled: NodeWorld) -> None:
    with pytest.raises(InvalidMatcher, match=r"name=~\"a\[\"") as caught:
        filled.request(SeriesRequest((selector('{name=~"a["}'),), None, 9))
    assert type(caught.value) is InvalidMatcher
    with pytest.raises(MatcherTooCostly) as costly:
        filled.request(SeriesRequest((selector('{name=~".*((x{50}){50}){50}"}'),), None, 9))
    assert costly.value.remedy


def test_a_shard_that_recovers_is_named_in_a_warning(filled: NodeWorld) -> None:
    status = filled.worlds[1].status
    status.phase, status.fraction = Phase.REPLAYING, 0.45
    answer = filled.request(SeriesRequest((EVERY,), None, 100))
    stored = written(filled.worlds[1].running.stored_before)
    since = f"the answer may lack samples since {stored}, and older ones that came late"
    assert answer.warnings == (f"shard 1 is replaying (45 %): {since}",)
    assert len(answer.keys) == 6
    status.phase, status.lag = Phase.CATCHING_UP, 1200
    names = filled.request(LabelNamesRequest((), None, 100))
    assert names.warnings == (f"shard 1 is catching up (1,200 records behind): {since}",)


@pytest.mark.parametrize("phase", [Phase.ACQUIRING, Phase.RECOVERING_INDEX, Phase.FENCED, Phase.FAILED, Phase.STOPPED])
def test_a_shard_that_can_not_answer_is_a_warning_while_another_can(filled: NodeWorld, phase: Phase) -> None:
    filled.worlds[0].status.phase = phase
    answer = filled.request(SamplesRequest(EVERY, ALL_TIMES, 100, 1000))
    assert samples_of(answer) == expected_samples(filled.worlds[1:])
    (warning,) = answer.warnings
    assert warning.startswith("shard 0 ")
    assert "lacks" in warning
    filled.worlds[1].status.phase = phase
    with pytest.raises(QueryUnavailable, match=r"shard 0 .*shard 1 "):
        filled.request(SamplesRequest(EVERY, ALL_TIMES, 100, 1000))


def test_a_shard_that_is_down_gets_no_request(filled: NodeWorld) -> None:
    down = ShardProcessStatus(0, ProcessState.DOWN, reason="Kafka has lost records")
    filled.status.statuses[0] = down
    answer = filled.request(SeriesRequest((EVERY,), None, 100))
    assert answer.warnings == ("shard 0 is down (Kafka has lost records): the answer lacks its series",)
    filled.status.statuses[0] = replace(down, state=ProcessState.WAITING, reason="", starts_in_s=4.2)
    answer = filled.request(SeriesRequest((EVERY,), None, 100))
    assert answer.warnings == ("shard 0 has ended and will be restarted in 4 s: the answer lacks its series",)


def test_a_shard_without_a_link_is_a_warning_and_no_shard_at_all_an_error(filled: NodeWorld) -> None:
    del filled.clients[1]
    answer = filled.request(SeriesRequest((EVERY,), None, 100))
    assert answer.warnings == ("shard 1 has not started yet: the answer lacks its series",)
    filled.clients.clear()
    filled.status.statuses.clear()
    with pytest.raises(QueryUnavailable, match="no shards"):
        filled.request(SeriesRequest((EVERY,), None, 100))


def test_errors_in_the_request_take_precedence_over_warnings(filled: NodeWorld) -> None:
    filled.worlds[0].status.phase = Phase.FAILED
    with pytest.raises(QueryTooLarge):
        filled.request(SamplesRequest(EVERY, ALL_TIMES, 1, 1000))
    with pytest.raises(InvalidMatcher):
        filled.request(SeriesRequest((selector('{name=~"a["}'),), None, 9))


def test_a_request_past_its_deadline_times_out(filled: NodeWorld) -> None:
    with pytest.raises(QueryTimedOut, match="took longer than 0 s"):
        filled.request(SeriesRequest((EVERY,), None, 100), 0.0)


def test_lookups_have_the_same_answers_from_the_jvms_and_from_python(filled: NodeWorld) -> None:
    """Each lookup is sent before the JVMs may answer, if they may at all, and again afterwards."""
    now = filled.worlds[0].clock.now_ms()
    some, many, gone = (selector('{name="only-1"}'),), (selector('{name=~"both|only-0"}'),), (selector("nobody"),)
    requests = [
        request
        for within in (None, TimeRange(now), TimeRange(0, now - 100 * HOUR))
        for selectors in (some, many, gone, some + many)
        for request in (
            SeriesRequest(selectors, within, 100),
            LabelNamesRequest(selectors, within, 100),
            LabelValuesRequest("name", selectors, within, 100),
        )
    ]
    links = [client for client in filled.clients.values() if isinstance(client, CountingLink)]
    publishes, filled.publishes = filled.publishes, False
    before = [content_of(filled.request(request)) for request in requests]
    assert not any(link.answered for link in links)
    filled.publishes = publishes

    def all_have_answered() -> bool:
        filled.request(requests[0])
        return all(link.answered for link in links)

    if filled.publishes:
        # A connection to a JVM that did not listen yet is retried after a while.
        assert wait_until(all_have_answered, timeout=30, clock=CLOCK)
    assert [content_of(filled.request(request)) for request in requests] == before
    assert all(link.answered > len(requests) / 2 if filled.publishes else not link.answered for link in links)


def content_of(answer: Any) -> object:
    """The content of an answer to a lookup."""
    if isinstance(answer, SeriesAnswer):
        return labels_of(answer.keys), answer.more, answer.warnings
    return answer.terms(), answer.counts.tolist(), answer.more, answer.of_all, answer.warnings
