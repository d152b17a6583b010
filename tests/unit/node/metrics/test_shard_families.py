"""The metric families of shards."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from strandline.node.metrics.families import Families
from strandline.node.metrics.metric import Metric, counter, gauge
from strandline.node.metrics.node_families import node_families
from strandline.node.metrics.readiness_watch import ReadinessFigures
from strandline.node.shard.phases import lag_seconds, phase_seconds
from strandline.node.shard.report import ShardReport
from strandline.node.shard.status import Counters, Phase, Status
from strandline.node.status.processes import ProcessState, ShardProcessStatus
from support.full_figures import (
    HOUR,
    NOW,
    PROCESS,
    active_shard_status,
    full_front,
    full_readiness,
    full_report,
    full_shard_status,
    full_state,
    full_status,
)

pytestmark = pytest.mark.unit


class ExposedValues:
    """Looks up exposed values."""

    def __init__(self, *statuses: ShardProcessStatus, readiness: ReadinessFigures | None = None) -> None:
        families = node_families(full_state(statuses), 0.5, full_front(), readiness, NOW)
        self._values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        return self._values.get((name, frozenset(labels.items())))

    def of_shard(self, name: str, **labels: str) -> float | None:
        return self.value(name, shard="0", **labels)

    def by(self, name: str, label: str) -> Mapping[str, float]:
        return {
            dict(labels)[label]: value
            for (metric, labels), value in self._values.items()
            if metric == name and dict(labels).get("shard", "0") == "0"
        }

    def names_of(self, shard: str) -> set[str]:
        return {name for name, labels in self._values if ("shard", shard) in labels}


def with_status(status: Status) -> ShardProcessStatus:
    return replace(full_shard_status(), report=replace(full_report(), status=status))


# No two figures in the report have the same value, so that no metric can be confused with another.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("strandline_shard_restarts_total", 3),
        ("strandline_shard_turns_total", 102),
        ("strandline_shard_report_age_seconds", 0.5),
        ("strandline_shard_cpu_seconds_total", 12.5),
        ("strandline_shard_resident_memory_bytes", 201_000),
        ("strandline_shard_peak_resident_memory_bytes", 202_000),
        ("strandline_ingested_records_total", 103),
        ("strandline_ingested_bytes_total", 104),
        ("strandline_ingested_samples_total", 105),
        ("strandline_new_keys_total", 106),
        ("strandline_refused_rows_total", 107),
        ("strandline_dead_letters_total", 110),
        ("strandline_lost_dead_letters_total", 135),
        ("strandline_log_retries_total", 126),
        ("strandline_position_offset", 130),
        ("strandline_lag_offsets", 101),
        ("strandline_lag_seconds", 30.5),
        ("strandline_held_back_offsets", 155),
        ("strandline_open_transaction_seconds", 156),
        ("strandline_newest_record_timestamp_seconds", NOW / 1000 - 30),
        ("strandline_buffer_series", 136),
        ("strandline_buffer_samples", 137),
        ("strandline_buffer_replaced_samples", 138),
        ("strandline_buffer_memory_bytes", 139),
        ("strandline_buffer_budget_used_bytes", 141),
        ("strandline_buffer_budget_limit_bytes", 148),
        ("strandline_spilled_bytes", 142),
        ("strandline_spill_limit_bytes", 149),
        ("strandline_result_cache_bytes", 164),
        ("strandline_segment_cache_bytes", 157),
        ("strandline_segment_cache_hits_total", 158),
        ("strandline_segment_cache_misses_total", 159),
        ("strandline_segment_cache_limit_bytes", 160),
        ("strandline_stored_segments_total", 117),
        ("strandline_stored_samples_total", 118),
        ("strandline_stored_series_total", 119),
        ("strandline_stored_bytes_total", 120),
        ("strandline_store_retries_total", 125),
        ("strandline_store_unanswered_seconds", 15.4),
        ("strandline_unstored_buckets", 2),
        ("strandline_oldest_unstored_bucket_age_seconds", 5_000),
        ("strandline_last_stored_timestamp_seconds", NOW / 1000 - 40),
        ("strandline_flush_interval_seconds", 3_600),
        ("strandline_keys", 134),
        ("strandline_live_keys", 143),
        ("strandline_keys_limit", 147),
        ("strandline_next_part_id", 144),
        ("strandline_refresh_lag_seconds", 1.45),
        ("strandline_lucene_bytes", 146),
        ("strandline_open_bucket_start_timestamp_seconds", 498_555 * 3_600),
        ("strandline_open_bucket_active_keys", 150),
        ("strandline_open_bucket_changed_keys", 151),
        ("strandline_cuts_total", 116),
        ("strandline_index_records_total", 122),
        ("strandline_rolled_over_keys_total", 123),
        ("strandline_ended_keys_total", 124),
        ("strandline_index_bytes_total", 121),
        ("strandline_last_index_bucket_bytes", 127),
        ("strandline_checkpoint_offset", 131),
        ("strandline_manifest_rows", 133),
        ("strandline_epoch", 132),
        ("strandline_phase_progress_ratio", 0.25),
        # A quarter took a minute.
        ("strandline_phase_time_left_seconds", 180),
        ("strandline_retention_margin_seconds", 7_200),
        ("strandline_kafka_retention_seconds", 86_400),
    ],
)
def test_a_value_is_exposed_under_its_name(name: str, value: float) -> None:
    assert ExposedValues(full_shard_status()).of_shard(name) == pytest.approx(value)


def test_values_with_labels_are_exposed_by_label() -> None:
    exposed = ExposedValues(full_shard_status())
    assert exposed.by("strandline_dropped_series_total", "reason") == {"no-labels": 111, "too-many-labels": 112}
    assert exposed.by("strandline_dropped_samples_total", "reason") == {"too-old": 108, "too-far-ahead": 109}
    assert exposed.by("strandline_skipped_entries_total", "kind") == {
        "histogram": 113,
        "exemplar": 114,
        "metadata": 115,
    }
    assert exposed.by("strandline_result_cache_fragments_total", "outcome") == {"hit": 161, "partial": 162, "miss": 163}
    assert exposed.by("strandline_replay_jobs", "state") == {"pending": 3, "leased": 2, "done": 4, "failed": 1}
    assert exposed.by("strandline_shard_stage_cpu_seconds_total", "stage")["consume"] == 0.125
    assert exposed.by("strandline_start_phase_seconds", "phase") == {
        "acquiring": 2,
        "recovering-index": 38,
        "replaying": 60,
    }


def test_a_shard_is_in_one_phase_and_its_process_in_one_state() -> None:
    exposed = ExposedValues(full_shard_status())
    phases = exposed.by("strandline_phase", "phase")
    assert set(phases) == {phase.value for phase in Phase}
    assert [phase for phase, value in phases.items() if value] == ["replaying"]
    states = exposed.by("strandline_shard_process_state", "state")
    assert set(states) == {state.value for state in ProcessState}
    assert [state for state, value in states.items() if value] == ["running"]


def test_a_shard_that_is_down_only_exposes_its_state() -> None:
    down = ShardProcessStatus(0, ProcessState.DOWN, restarts=5, exit_code=1, reason="the disk is full")
    exposed = ExposedValues(down)
    assert exposed.names_of("0") == {
        "strandline_shard_up",
        "strandline_shard_process_state",
        "strandline_shard_restarts_total",
        "strandline_phase",
    }
    assert exposed.of_shard("strandline_shard_up") == 0
    assert exposed.of_shard("strandline_shard_process_state", state="down") == 1
    assert sum(exposed.by("strandline_phase", "phase").values()) == 0
    assert (exposed.value("strandline_shards"), exposed.value("strandline_active_shards")) == (1, 0)


def test_before_the_index_is_loaded_its_metrics_are_missing() -> None:
    starting = replace(full_shard_status(), report=ShardReport(full_status(), PROCESS, reported_at=NOW))
    exposed = ExposedValues(starting)
    for name in ("keys", "live_keys", "buffer_samples", "unstored_buckets", "checkpoint_offset", "manifest_rows"):
        assert exposed.of_shard(f"strandline_{name}") is None
    assert exposed.of_shard("strandline_oldest_unstored_bucket_age_seconds") is None
    assert exposed.of_shard("strandline_shard_up") == 1
    assert exposed.of_shard("strandline_phase_progress_ratio") == 0.25
    assert exposed.of_shard("strandline_keys_limit") == 0


def test_unknown_values_are_missing_and_never_zero() -> None:
    status = Status(phase=Phase.ACTIVE)
    exposed = ExposedValues(
        replace(
            full_shard_status(),
            report=replace(full_report(), status=status, position=None, checkpoint=-1, open_bucket=None),
        )
    )
    for name in (
        "lag_offsets",
        "lag_seconds",
        "held_back_offsets",
        "open_transaction_seconds",
        "newest_record_timestamp_seconds",
        "last_stored_timestamp_seconds",
        "last_index_bucket_bytes",
        "position_offset",
        "checkpoint_offset",
        "open_bucket_start_timestamp_seconds",
        "phase_progress_ratio",
        "phase_time_left_seconds",
        "retention_margin_seconds",
    ):
        assert exposed.of_shard(f"strandline_{name}") is None, name


def test_a_shard_without_unstored_data_has_no_unstored_age_and_no_jobs() -> None:
    exposed = ExposedValues(active_shard_status())
    assert exposed.of_shard("strandline_oldest_unstored_bucket_age_seconds") == 0
    assert set(exposed.by("strandline_replay_jobs", "state").values()) == {0}
    assert exposed.of_shard("strandline_lag_seconds") == 0
    assert exposed.of_shard("strandline_held_back_offsets") == 0
    assert exposed.of_shard("strandline_open_transaction_seconds") == 0
    assert exposed.value("strandline_active_shards") == 1


def test_each_shard_has_its_own_series() -> None:
    exposed = ExposedValues(full_shard_status(0), active_shard_status(7))
    assert exposed.names_of("7") >= exposed.names_of("0") - {
        "strandline_phase_progress_ratio",
        "strandline_phase_time_left_seconds",
    }
    assert exposed.value("strandline_lag_offsets", shard="7") == 0
    assert exposed.value("strandline_lag_offsets", shard="0") == 101
    assert (exposed.value("strandline_shards"), exposed.value("strandline_active_shards")) == (2, 1)


# Lag in seconds.


def test_the_lag_in_seconds_is_the_age_of_unread_records() -> None:
    def lag_of(status: Status, behind_s: float | None) -> float | None:
        return lag_seconds(ShardReport(status, PROCESS, behind_s=behind_s), NOW)

    newest = Counters(newest_record_at=NOW - 90_000)
    assert lag_of(Status(lag=0, counters=newest), 0.0) == 0, (
        "an idle partition has no lag, however old its newest record"
    )
    assert lag_of(Status(lag=0, counters=newest), 72.5) == 72.5, "records behind an open transaction count"
    assert lag_of(Status(lag=None, counters=newest), None) is None, "it is unknown while Kafka does not answer"
    assert lag_of(Status(lag=5, counters=newest), None) == 90, "during the start, the newest record counts"
    assert lag_of(Status(lag=5), None) is None, "no record was read yet"
    ahead = Status(lag=5, counters=Counters(newest_record_at=NOW + 5_000))
    assert lag_of(ahead, None) == 0, "a producer's clock may be fast"


# The duration of a start.


def test_finished_phases_keep_their_duration_and_active_is_not_included() -> None:
    status = Status()
    for phase, at in ((Phase.ACQUIRING, 0), (Phase.RECOVERING_INDEX, 2_000), (Phase.CATCHING_UP, 5_000)):
        status.enter(phase, at)
    status.enter(Phase.ACTIVE, 9_000)
    durations = {Phase.ACQUIRING: 2.0, Phase.RECOVERING_INDEX: 3.0, Phase.CATCHING_UP: 4.0}
    assert phase_seconds(status, 10_000) == durations
    assert phase_seconds(status, 10_000_000) == durations


def test_of_a_start_that_failed_the_last_phase_has_no_time() -> None:
    status = Status()
    status.enter(Phase.ACQUIRING, 0)
    status.enter(Phase.RECOVERING_INDEX, 2_000)
    status.phase = Phase.FAILED
    assert phase_seconds(status, 10_000) == {Phase.ACQUIRING: 2.0}
    assert phase_seconds(Status(), 10_000) == {}


def test_phases_that_began_in_one_millisecond_stay_in_their_order() -> None:
    status = Status()
    for phase in (Phase.ACQUIRING, Phase.RECOVERING_INDEX, Phase.CATCHING_UP):
        status.enter(phase, 7)
    assert phase_seconds(status, 1_007) == {
        Phase.ACQUIRING: 0.0,
        Phase.RECOVERING_INDEX: 0.0,
        Phase.CATCHING_UP: 1.0,
    }


# Readiness.


def test_ages_of_readiness_are_as_of_the_scrape() -> None:
    exposed = ExposedValues(full_shard_status(), readiness=full_readiness())
    hour = NOW // HOUR - 2
    assert exposed.value("strandline_newest_ready_hour_end_timestamp_seconds") == (hour + 1) * 3_600
    assert exposed.by("strandline_partition_stored_until_timestamp_seconds", "partition") == {
        "0": (hour + 1) * 3_600,
        "1": (hour + 2) * 3_600,
    }
    assert exposed.value("strandline_partition_behind_seconds", partition="0") == NOW / 1000 - (hour + 1) * 3_600
    assert exposed.value("strandline_unread_partitions") == 1
    assert exposed.value("strandline_dataset_flush_interval_seconds") == 3_600
    assert exposed.value("strandline_topic_retention_seconds") == 86_400
    assert exposed.value("strandline_readiness_age_seconds") == 4
    assert exposed.value("strandline_readiness_failures_total") == 6


def test_before_the_first_poll_only_failures_of_readiness_are_exposed() -> None:
    exposed = ExposedValues(full_shard_status(), readiness=ReadinessFigures(failures=2))
    assert exposed.value("strandline_readiness_failures_total") == 2
    assert exposed.value("strandline_readiness_age_seconds") is None
    assert exposed.value("strandline_unread_partitions") is None
    assert exposed.value("strandline_newest_ready_hour_end_timestamp_seconds") is None


# Families.


def test_only_metrics_of_the_catalogue_and_only_with_all_their_labels_can_be_put() -> None:
    known = gauge("strandline_known", "Known.", "Nothing.", labels=("shard",))
    families = Families([known])
    other: Metric = counter("strandline_other_total", "Other.", "Nothing.")
    with pytest.raises(KeyError):
        families.put(other, 1)
    with pytest.raises(ValueError, match=r"strandline_known has the labels \('shard',\)"):
        families.put(known, 1)


def test_the_supervisor_and_its_other_processes_are_exposed() -> None:
    exposed = ExposedValues()
    assert exposed.value("strandline_supervisor_cpu_seconds_total") == 215.5
    assert exposed.value("strandline_supervisor_resident_memory_bytes") == 216_000
    assert exposed.value("strandline_supervisor_state_age_seconds") == 0.5
    assert exposed.value("strandline_start_timestamp_seconds") == (NOW - 213_000) / 1000
    assert exposed.value("strandline_watchdog_feeds_total") == 214
    assert exposed.by("strandline_process_restarts_total", "process") == {"front": 211, "worker": 212}
    states = ("starting", "running", "waiting", "down", "stopped")
    for process, expected in (("front", "running"), ("worker", "down")):
        for state in states:
            state_value = exposed.value("strandline_process_state", process=process, state=state)
            assert state_value == (state == expected)
