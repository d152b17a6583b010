"""Where a shard continues to read: each relation of checkpoint and log, and what an operator may accept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import ExitCode, Fatal
from strandline.recovery.offset_policy import (
    Accepted,
    DataLost,
    Decision,
    FirstStart,
    LogMismatch,
    LogState,
    RecordLoss,
    Reset,
    Resume,
    StartAt,
    StartFresh,
    decide,
)

pytestmark = pytest.mark.unit

WHERE = "topic metrics, partition 3"
START, END = 100, 200
EARLIEST, LATEST = FirstStart(StartAt.EARLIEST), FirstStart(StartAt.LATEST)
LOOK_BACK = FirstStart(StartAt.LOOK_BACK, 3_600_000)
NOTHING = Accepted()
EVERYTHING = Accepted(loss_to=10**12, another_topic=True)


def decided(
    checkpoint: int | None,
    *,
    stored_topic_id: str = "topic-1",
    start: int = START,
    end: int = END,
    look_back: int | None = None,
    in_dataset: bool = True,
    first_start: FirstStart = EARLIEST,
    accepted: Accepted = NOTHING,
    furthest: int = 0,
) -> Decision:
    return decide(
        WHERE,
        checkpoint,
        stored_topic_id,
        LogState("topic-1", start, end, look_back),
        in_dataset=in_dataset,
        first_start=first_start,
        accepted=accepted,
        furthest=furthest,
    )


# No checkpoint: the partition was never read.


@pytest.mark.parametrize("start", [0, 100])
def test_a_first_start_reads_from_the_log_s_beginning_by_default(start: int) -> None:
    assert decided(None, start=start, first_start=FirstStart()) == StartFresh(start)


def test_a_first_start_with_latest_reads_from_the_end() -> None:
    assert decided(None, first_start=LATEST) == StartFresh(END)


@pytest.mark.parametrize("found", [START, 150, END])
def test_a_first_start_with_a_look_back_reads_from_the_offset_of_that_time(found: int) -> None:
    assert decided(None, first_start=LOOK_BACK, look_back=found) == StartFresh(found)


def test_a_look_back_without_a_record_that_new_reads_from_the_end() -> None:
    assert decided(None, first_start=LOOK_BACK, look_back=None) == StartFresh(END)


@pytest.mark.parametrize(("found", "begin"), [(START - 1, START), (0, START), (END + 1, END), (10**9, END)])
def test_a_look_back_stays_within_a_log_that_has_advanced_in_the_meantime(found: int, begin: int) -> None:
    assert decided(None, first_start=LOOK_BACK, look_back=found) == StartFresh(begin)


def test_only_a_look_back_uses_the_offset_of_that_time() -> None:
    assert decided(None, first_start=EARLIEST, look_back=150) == StartFresh(START)
    assert decided(None, first_start=LATEST, look_back=150) == StartFresh(END)


@pytest.mark.parametrize("first_start", [EARLIEST, LATEST, LOOK_BACK])
def test_scenario_23_a_partition_that_was_added_later_is_read_from_its_start_whatever_the_policy(
    first_start: FirstStart,
) -> None:
    assert decided(None, in_dataset=False, first_start=first_start, look_back=150) == StartFresh(START)
    assert decided(None, in_dataset=False, first_start=first_start, start=0, end=0) == StartFresh(0)


def test_a_partition_that_was_added_later_resumes_like_any_other_once_it_was_read() -> None:
    assert decided(150, in_dataset=False, first_start=LATEST) == Resume(150)
    with pytest.raises(DataLost):
        decided(START - 1, in_dataset=False)


@pytest.mark.parametrize("accepted", [NOTHING, EVERYTHING])
def test_a_topic_recreated_before_its_first_record_was_read_needs_no_acceptance(accepted: Accepted) -> None:
    assert decided(None, stored_topic_id="topic-0", accepted=accepted) == StartFresh(START)


# A checkpoint within the log.


@pytest.mark.parametrize("checkpoint", [START, START + 1, 150, END - 1, END])
@pytest.mark.parametrize("first_start", [EARLIEST, LATEST, LOOK_BACK])
@pytest.mark.parametrize("accepted", [NOTHING, EVERYTHING])
def test_reading_resumes_at_a_checkpoint_within_the_log(
    checkpoint: int, first_start: FirstStart, accepted: Accepted
) -> None:
    """Its first offset and its end belong to it; what was accepted without need changes nothing."""
    assert decided(checkpoint, first_start=first_start, look_back=160, accepted=accepted) == Resume(checkpoint)


def test_reading_resumes_in_an_empty_log() -> None:
    assert decided(0, start=0, end=0) == Resume(0)
    assert decided(100, start=100, end=100) == Resume(100)


# A checkpoint below the log: data is lost.


@pytest.mark.parametrize("checkpoint", [START - 1, 0])
def test_records_that_the_log_dropped_before_they_were_stored_stop_the_start(checkpoint: int) -> None:
    with pytest.raises(DataLost) as raised:
        decided(checkpoint)
    assert (raised.value.first, raised.value.end) == (checkpoint, START)


def test_lost_data_has_an_exit_code_of_its_own_and_names_place_offsets_and_remedy() -> None:
    with pytest.raises(DataLost) as raised:
        decided(97)
    error = raised.value
    assert isinstance(error, Fatal)
    assert error.exit_code == ExitCode.DATA_LOST == 3
    assert error.message == (
        "topic metrics, partition 3 has lost the records from offset 97 up to 100: its checkpoint is 97, and the log"
        " starts at 100"
    )
    assert error.remedy == "Accept the loss of [97, 100) if it can't be undone, and start again"


@pytest.mark.parametrize("loss_to", [START, START + 1, END])
def test_a_loss_that_was_accepted_is_recorded_and_reading_starts_with_the_log(loss_to: int) -> None:
    assert decided(START - 1, accepted=Accepted(loss_to=loss_to)) == RecordLoss(START - 1, START)
    assert decided(0, accepted=Accepted(loss_to=loss_to)) == RecordLoss(0, START)


@pytest.mark.parametrize("accepted", [Accepted(loss_to=START - 1), Accepted(loss_to=0), Accepted(another_topic=True)])
def test_a_loss_greater_than_the_accepted_one_stops_the_start_again(accepted: Accepted) -> None:
    """Kafka deleted more records after an operator had accepted the loss."""
    with pytest.raises(DataLost, match=r"Accept the loss of \[50, 100\)"):
        decided(50, accepted=accepted)


# A checkpoint past the log, or another log.


@pytest.mark.parametrize("checkpoint", [END + 1, 10**9])
@pytest.mark.parametrize("accepted", [NOTHING, Accepted(loss_to=10**12)])
def test_a_log_that_ends_before_the_checkpoint_is_refused(checkpoint: int, accepted: Accepted) -> None:
    with pytest.raises(LogMismatch) as raised:
        decided(checkpoint, accepted=accepted)
    assert isinstance(raised.value, Fatal)
    assert (
        raised.value.message
        == f"topic metrics, partition 3 ends at offset 200, before {checkpoint}, up to which it was read"
    )
    assert raised.value.remedy == (
        "The log was truncated or restored from an older copy: restore it, or accept a new beginning at offset 100"
    )


@pytest.mark.parametrize("checkpoint", [0, START - 1, START, 150, END, END + 1])
@pytest.mark.parametrize("accepted", [NOTHING, Accepted(loss_to=10**12)])
def test_another_topic_is_refused_wherever_the_checkpoint_lies(checkpoint: int, accepted: Accepted) -> None:
    """Also if the offsets would fit, which is chance."""
    with pytest.raises(LogMismatch) as raised:
        decided(checkpoint, stored_topic_id="topic-0", accepted=accepted)
    assert raised.value.message == (
        f"topic metrics, partition 3 is another topic than the one that was read up to offset {checkpoint}: its id is"
        " topic-1, and topic-0 is stored"
    )
    assert raised.value.remedy == (
        "If the topic was deleted and recreated, accept that, and reading starts at its beginning, offset 100"
    )


@pytest.mark.parametrize("checkpoint", [0, START, END, END + 1])
def test_another_topic_that_was_accepted_is_read_from_its_beginning(checkpoint: int) -> None:
    reset = decided(checkpoint, stored_topic_id="topic-0", first_start=LATEST, accepted=Accepted(another_topic=True))
    assert reset == Reset(START)


def test_a_shorter_log_that_was_accepted_is_read_from_its_beginning() -> None:
    assert decided(END + 1, first_start=LATEST, accepted=Accepted(another_topic=True)) == Reset(START)


# All cases at once.

offsets = st.integers(0, 12)


@given(
    checkpoint=st.none() | offsets,
    start=offsets,
    length=offsets,
    same_topic=st.booleans(),
    policy=st.tuples(st.sampled_from([EARLIEST, LATEST, LOOK_BACK]), st.none() | offsets, st.booleans()),
    accepted=st.builds(Accepted, loss_to=st.none() | offsets, another_topic=st.booleans()),
)
def test_whatever_the_offsets_a_case_is_decided_by_the_table_and_nothing_else(
    *,
    checkpoint: int | None,
    start: int,
    length: int,
    same_topic: bool,
    policy: tuple[FirstStart, int | None, bool],
    accepted: Accepted,
) -> None:
    end, (first_start, look_back, in_dataset) = start + length, policy

    def decision() -> Decision:
        return decided(
            checkpoint,
            stored_topic_id="topic-1" if same_topic else "topic-0",
            start=start,
            end=end,
            look_back=look_back,
            in_dataset=in_dataset,
            first_start=first_start,
            accepted=accepted,
        )

    if checkpoint is None:
        begin = decision()
        assert isinstance(begin, StartFresh)
        assert start <= begin.offset <= end
        assert in_dataset or begin.offset == start
    elif not same_topic or checkpoint > end:
        if accepted.another_topic:
            assert decision() == Reset(start)
        else:
            with pytest.raises(LogMismatch):
                decision()
    elif checkpoint >= start:
        assert decision() == Resume(checkpoint)
    elif accepted.loss_to is not None and accepted.loss_to >= start:
        assert decision() == RecordLoss(checkpoint, start)
    else:
        with pytest.raises(DataLost):
            decision()


def test_a_log_that_ends_before_the_newest_cut_is_refused_though_the_checkpoint_is_in_it() -> None:
    with pytest.raises(LogMismatch, match="ends at offset 200, before 201"):
        decided(END - 50, furthest=END + 1)
    assert decided(END - 50, furthest=END) == Resume(END - 50)


# Common operational histories, each as a row of the table.


@pytest.mark.parametrize(("start", "end"), [(0, 0), (0, 40), (7, 40)])
@pytest.mark.parametrize("first_start", [EARLIEST, LATEST, LOOK_BACK])
def test_partitions_that_were_added_while_the_node_was_down_lose_nothing(
    first_start: FirstStart, start: int, end: int
) -> None:
    """The others continue; the new one is read from its beginning, however many records have arrived."""
    assert decided(150, first_start=first_start) == Resume(150)
    assert decided(None, in_dataset=False, first_start=first_start, start=start, end=end) == StartFresh(start)


@pytest.mark.parametrize("end", [0, 100, 150, 10**6])
def test_a_topic_that_was_deleted_and_recreated_is_detected_by_its_id(end: int) -> None:
    """Whether it is empty, shorter, or has grown past the checkpoint by now."""
    with pytest.raises(LogMismatch, match="is another topic"):
        decided(100, stored_topic_id="topic-0", start=0, end=end)
    accepted = Accepted(another_topic=True)
    assert decided(100, stored_topic_id="topic-0", start=0, end=end, accepted=accepted) == Reset(0)


def test_retention_that_passed_the_checkpoint_is_a_loss_even_of_the_whole_log() -> None:
    """All segments are gone: the log is empty, and begins where it ends."""
    with pytest.raises(DataLost) as raised:
        decided(150, start=500, end=500)
    assert (raised.value.first, raised.value.end) == (150, 500)
    assert decided(150, start=500, end=500, accepted=Accepted(loss_to=500)) == RecordLoss(150, 500)
    # It may delete everything up to the checkpoint.
    assert decided(500, start=500, end=500) == Resume(500)


@pytest.mark.parametrize("first_start", [EARLIEST, LATEST, LOOK_BACK])
def test_an_empty_topic_is_begun_at_its_first_offset(first_start: FirstStart) -> None:
    assert decided(None, start=0, end=0, first_start=first_start) == StartFresh(0)


def test_a_partition_that_ends_in_transaction_markers_resumes_after_them() -> None:
    """The end is an offset, not a record: a cut by the clock is after markers, which readers do not see."""
    assert decided(END, furthest=END) == Resume(END)
    assert decided(END - 2, furthest=END - 2) == Resume(END - 2)
