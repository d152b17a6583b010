"""The report of `strandline bench recovery`."""

import json
from dataclasses import asdict, replace

import pytest

from strandline.node.bench.machine import MIB, Machine
from strandline.node.bench.recovery_report import IndexStart, LagStart, RecoveryReport, Start, WarmReplay
from strandline.node.output import Table

pytestmark = pytest.mark.unit

ENTERED = {"acquiring": 10_800, "recovering-index": 10_950, "catching-up": 12_450, "active": 12_500}
START = Start(
    seconds=2.5,
    process_start=0.8,
    acquiring=0.15,
    recovering_index=1.5,
    replaying=0.0,
    catching_up=0.05,
    cpu_seconds=3.25,
    peak_resident_bytes=700 * MIB,
)
REPORT = RecoveryReport(
    machine=Machine("A CPU", 2, 8_000, "6.1", "3.11"),
    labels_a_series=10,
    samples_a_record=2_000,
    lag_series=100_000,
    index_starts=(
        IndexStart(1_000_000, "warm", START),
        IndexStart(1_000_000, "cold", replace(START, seconds=9.25, recovering_index=8.25)),
    ),
    lag_starts=(
        LagStart("direct", 5_000, 10_000_000, replace(START, seconds=7.0, catching_up=4.55), 8.0, 0),
        LagStart("spark", 5_000, 10_000_000, replace(START, seconds=20.0, replaying=17.5), 20.0, 1_800 * MIB),
    ),
    warm_replays=(WarmReplay(5_000, 10_000_000, 12.5),),
)


def tables(report: RecoveryReport) -> list[Table]:
    return [block for block in report.blocks() if isinstance(block, Table)]


def lines(report: RecoveryReport) -> list[str]:
    return [block for block in report.blocks() if isinstance(block, str)]


def start_of(entered: dict[str, int]) -> Start:
    return Start.of(10_000, entered, cpu_seconds=3.25, peak_resident_bytes=700 * MIB)


def test_a_start_is_split_where_its_phases_were_entered() -> None:
    assert start_of(ENTERED) == START


def test_a_replay_ends_the_index_and_lasts_until_the_shard_catches_up() -> None:
    start = start_of(ENTERED | {"replaying": 11_950})
    assert (start.recovering_index, start.replaying, start.catching_up) == (1.0, 0.5, 0.05)


def test_phases_after_active_are_not_part_of_the_start() -> None:
    assert start_of(ENTERED | {"failed": 60_000}) == START


def test_phases_and_the_processs_start_make_up_the_total() -> None:
    start = start_of(ENTERED | {"replaying": 11_950})
    parts = (start.process_start, start.acquiring, start.recovering_index, start.replaying, start.catching_up)
    assert sum(parts) == pytest.approx(start.seconds)


def test_rates_are_over_all_of_the_time_until_the_samples_are_stored() -> None:
    assert [start.samples_per_second for start in REPORT.lag_starts] == [1_250_000, 500_000]
    assert REPORT.warm_replays[0].samples_per_second == 800_000


def test_the_report_begins_with_the_load_and_the_machine() -> None:
    assert lines(REPORT)[:2] == [
        "10 labels a series, 2,000 samples a record; times in seconds",
        "A CPU, 2 cores, 8000 MB, Linux 6.1, Python 3.11",
    ]


def test_starts_are_shown_with_their_phases_and_memory() -> None:
    index, lag, warm = tables(REPORT)
    assert index.rows == (
        ("1,000,000", "warm", "2.50", "0.80", "0.15", "1.50", "0.00", "0.05", "3.25", "700"),
        ("1,000,000", "cold", "9.25", "0.80", "0.15", "8.25", "0.00", "0.05", "3.25", "700"),
    )
    assert [len(row) for row in index.rows] == [len(index.columns)] * 2
    assert lag.rows[1] == (
        *("spark", "5,000", "10,000,000", "20.00", "0.80", "0.15", "1.50", "17.50", "0.05", "3.25"),
        *("20.00", "500,000", "700", "1,800"),
    )
    assert [len(row) for row in lag.rows] == [len(lag.columns)] * 2
    assert warm.rows == (("5,000", "10,000,000", "12.50", "800,000"),)


def test_phases_are_in_the_columns_of_their_names() -> None:
    index, lag, _ = tables(REPORT)
    named = dict(zip(lag.columns, lag.rows[0], strict=True))
    assert (named["to ACTIVE"], named["catching up"], named["all stored"]) == ("7.00", "4.55", "8.00")
    assert dict(zip(index.columns, index.rows[1], strict=True))["recovering index"] == "8.25"


def test_a_session_that_had_to_start_first_is_not_hidden() -> None:
    assert [line for line in lines(REPORT) if "includes the start of a session" in line]


def test_a_skipped_part_has_no_table() -> None:
    assert len(tables(replace(REPORT, index_starts=()))) == 2
    (only,) = tables(replace(REPORT, lag_starts=(), warm_replays=()))
    assert only.columns[:2] == ("series", "local copy")


def test_the_picture_has_a_line_for_each_kind_of_start() -> None:
    picture = REPORT.picture()
    assert picture.count("<polyline") == 5
    for text in ("direct", "spark, from its start", "spark jobs, session warm", "with the local copy", "20 s"):
        assert f">{text}</text>" in picture


def test_the_picture_of_one_part_has_only_that() -> None:
    picture = replace(REPORT, lag_starts=(), warm_replays=()).picture()
    assert picture.count("<polyline") == 2
    assert "Against lag" not in picture


def test_the_report_is_a_json_document() -> None:
    document = json.loads(json.dumps(asdict(REPORT), allow_nan=False))
    assert document["index_starts"][1]["start"]["recovering_index"] == 8.25
    assert document["lag_starts"][0]["reader"] == "direct"
    assert document["warm_replays"][0]["seconds"] == 12.5
