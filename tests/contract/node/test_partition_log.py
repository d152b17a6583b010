"""What holds for every `PartitionLog`: Kafka's, and the one in memory."""

import pytest

from strandline.node.shard.log import NO_TIME, LogEnds, LogUnreachable, OffsetGone, PartitionLog, TopicUnfit
from support.partition_logs import Partition, answered, offsets, read_on, values

pytestmark = pytest.mark.contract

NOON = 1_700_000_000_000


@pytest.fixture
def log(partition: Partition) -> PartitionLog:
    return partition.log


def fill(partition: Partition, count: int) -> None:
    for number in range(count):
        partition.append(b"value %d" % number, NOON + number)


def poll_on(log: PartitionLog) -> None:
    for _ in range(100):
        log.poll(10, 0.1)


class TestReading:
    def test_records_are_read_from_the_offset_on_with_their_times_and_values(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        fill(partition, 5)
        log.seek(2)
        (records,) = read_on(log)
        assert records.offsets.tolist() == [2, 3, 4]
        assert records.times.tolist() == [NOON + 2, NOON + 3, NOON + 4]
        assert list(records.values) == [b"value 2", b"value 3", b"value 4"]
        assert records.position == 5

    def test_records_whose_sample_times_were_checked_are_flagged(self, partition: Partition, log: PartitionLog) -> None:
        for number in range(6):
            partition.append(b"value", NOON, times_checked=number % 3 == 1)
        transaction = partition.begin()
        transaction.append(b"value", NOON, times_checked=True)
        transaction.commit()
        log.seek(0)
        read = read_on(log, most=4)
        marks = [mark for records in read for mark in records.times_checked.tolist()]
        assert marks == [False, True, False, False, True, False, True]
        assert read[0].part(1, 3).times_checked.tolist() == [True, False]

    def test_records_have_the_epoch_of_their_leader_each_time_they_are_read(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        fill(partition, 3)
        log.seek(0)
        epochs = [epoch for records in read_on(log) for epoch in records.leader_epochs.tolist()]
        assert (len(epochs), len(set(epochs))) == (3, 1)
        assert epochs[0] >= 0
        log.seek(2)
        (records,) = read_on(log)
        assert records.leader_epochs.tolist() == epochs[:1]

    def test_a_record_without_a_time_is_flagged(self, partition: Partition, log: PartitionLog) -> None:
        partition.append(b"value", NOON)
        partition.append(b"value", NO_TIME)
        log.seek(0)
        times = [time for records in read_on(log) for time in records.times.tolist()]
        assert times == [NOON, NO_TIME]

    def test_a_poll_returns_at_most_the_requested_number_of_records(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        fill(partition, 7)
        log.seek(0)
        read = read_on(log, most=3)
        assert max(len(records) for records in read) <= 3
        assert offsets(read) == list(range(7))

    def test_the_position_is_between_returned_and_following_records(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        fill(partition, 4)
        log.seek(0)
        first = next(records for records in read_on(log, most=1))
        assert first.position == 1

    def test_a_part_of_a_batch_keeps_its_offsets_and_position(self, partition: Partition, log: PartitionLog) -> None:
        fill(partition, 4)
        log.seek(0)
        (records,) = read_on(log)
        front, back = records.part(0, 1), records.part(1, 4)
        assert (front.offsets.tolist(), front.position) == ([0], 1)
        assert (back.offsets.tolist(), back.position) == ([1, 2, 3], 4)
        assert list(back.values) == [b"value 1", b"value 2", b"value 3"]
        assert back.times.tolist() == [NOON + 1, NOON + 2, NOON + 3]

    def test_at_the_end_a_poll_returns_no_records_and_keeps_the_position(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        fill(partition, 3)
        log.seek(3)
        records = log.poll(10, 0.2)
        assert (len(records), records.position) == (0, 3)

    def test_an_empty_log_has_nothing_to_read(self, log: PartitionLog) -> None:
        log.seek(0)
        records = log.poll(10, 0.2)
        assert (len(records), records.position) == (0, 0)
        assert log.ends() == LogEnds(0, 0, 0)

    def test_records_that_are_appended_later_are_read_later(self, partition: Partition, log: PartitionLog) -> None:
        fill(partition, 2)
        log.seek(0)
        assert offsets(read_on(log)) == [0, 1]
        fill(partition, 2)
        assert offsets(read_on(log)) == [2, 3]

    def test_a_seek_goes_back_and_forth(self, partition: Partition, log: PartitionLog) -> None:
        fill(partition, 6)
        for start in (4, 0, 5, 2, 2, 6, 1):
            log.seek(start)
            assert offsets(read_on(log)) == list(range(start, 6))

    def test_a_poll_before_the_first_seek_is_an_error(self, log: PartitionLog) -> None:
        with pytest.raises(RuntimeError, match="seek"):
            log.poll(1, 0)

    def test_closing_twice_does_nothing(self, log: PartitionLog) -> None:
        log.seek(0)
        log.close()
        log.close()

    def test_an_offset_is_mirrored_for_lag_tools(self, partition: Partition, log: PartitionLog) -> None:
        fill(partition, 3)
        log.mirror(2)
        assert partition.mirrored(2)


class TestTransactions:
    def test_the_position_passes_a_marker_at_the_end(self, partition: Partition, log: PartitionLog) -> None:
        transaction = partition.begin()
        transaction.append(b"first", NOON)
        transaction.append(b"second", NOON)
        transaction.commit()
        assert log.ends() == LogEnds(0, 3, 3)
        log.seek(0)
        assert values(read_on(log)) == [b"first", b"second"]
        assert log.poll(10, 0.2).position == 3

    def test_aborted_records_at_the_end_are_skipped_and_never_returned(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        fill(partition, 2)
        transaction = partition.begin()
        transaction.append(b"never", NOON)
        transaction.abort()
        assert log.ends() == LogEnds(0, 4, 4)
        log.seek(0)
        assert offsets(read_on(log)) == [0, 1]
        assert log.poll(10, 0.2).position == 4

    def test_a_reader_that_begins_among_aborted_records_reaches_the_end(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        transaction = partition.begin()
        for _ in range(3):
            transaction.append(b"never", NOON)
        transaction.abort()
        log.seek(1)
        assert read_on(log) == []
        assert log.poll(10, 0.2).position == 4

    def test_aborted_records_in_the_middle_leave_a_hole(self, partition: Partition, log: PartitionLog) -> None:
        fill(partition, 1)
        transaction = partition.begin()
        transaction.append(b"never", NOON)
        transaction.abort()
        partition.append(b"after", NOON)
        log.seek(0)
        read = read_on(log)
        assert offsets(read) == [0, 3]
        assert values(read) == [b"value 0", b"after"]

    def test_live_reading_waits_at_an_open_transaction_and_skips_nothing_once_it_commits(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        """Scenario 14."""
        fill(partition, 2)
        transaction = partition.begin()
        transaction.append(b"open 0", NOON)
        partition.append(b"behind", NOON)
        transaction.append(b"open 1", NOON)
        assert log.ends() == LogEnds(0, 2, 5)
        log.seek(0)
        assert offsets(read_on(log)) == [0, 1]
        waiting = log.poll(10, 0.2)
        assert (len(waiting), waiting.position) == (0, 2)
        transaction.commit()
        read = read_on(log)
        assert offsets(read) == [2, 3, 4]
        assert values(read) == [b"open 0", b"behind", b"open 1"]
        assert log.poll(10, 0.2).position == log.ends().last_stable == 6

    def test_records_after_an_open_transaction_are_read_once_it_is_aborted(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        """Scenario 14."""
        transaction = partition.begin()
        transaction.append(b"never", NOON)
        partition.append(b"behind", NOON)
        log.seek(0)
        waiting = log.poll(10, 0.2)
        assert (len(waiting), waiting.position) == (0, 0)
        transaction.abort()
        assert offsets(read_on(log)) == [1]
        assert log.poll(10, 0.2).position == 3

    def test_the_position_passes_aborted_records_that_end_at_an_open_transaction(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        """There is no marker between the two, because it is after the records of the open transaction."""
        aborted, opened = partition.begin(), partition.begin()
        aborted.append(b"never", NOON)
        opened.append(b"later", NOON)
        log.seek(0)
        assert log.poll(10, 0.2).position == 0
        aborted.abort()
        assert log.ends() == LogEnds(0, 1, 3)
        assert read_on(log) == []
        assert log.poll(10, 0.2).position == 1
        opened.commit()
        assert values(read_on(log)) == [b"later"]


class TestEndsWithoutWaiting:
    def test_the_answer_covers_all_records_from_before_the_request(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        fill(partition, 3)
        transaction = partition.begin()
        transaction.append(b"open", NOON)
        partition.append(b"behind", NOON)
        partition.delete_before(1)
        assert answered(log.request_ends()) == log.ends() == LogEnds(1, 3, 5)
        transaction.abort()
        assert answered(log.request_ends()) == LogEnds(1, 6, 6)

    def test_records_are_read_while_the_request_is_pending(self, partition: Partition, log: PartitionLog) -> None:
        fill(partition, 2)
        log.seek(0)
        question = log.request_ends()
        assert offsets(read_on(log)) == [0, 1]
        assert answered(question) == LogEnds(0, 2, 2)
        assert question.answer() == LogEnds(0, 2, 2), "it stays the same"


class TestDeletedOffsets:
    def test_a_log_begins_where_its_records_do(self, partition: Partition, log: PartitionLog) -> None:
        fill(partition, 5)
        partition.delete_before(3)
        assert log.ends() == LogEnds(3, 5, 5)
        log.seek(3)
        assert offsets(read_on(log)) == [3, 4]

    def test_a_position_below_the_start_is_an_error_that_names_both(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        fill(partition, 50)
        partition.delete_before(43)
        log.seek(17)
        for _ in range(2):
            with pytest.raises(OffsetGone, match=r"17.*43"):
                log.poll(10, 5)
        log.seek(43)
        assert offsets(read_on(log)) == list(range(43, 50))

    def test_records_that_are_deleted_while_they_are_read_are_an_error(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        fill(partition, 2)
        log.seek(0)
        assert offsets(read_on(log)) == [0, 1]
        log.seek(1)
        partition.delete_before(2)
        with pytest.raises(OffsetGone, match=r"1\b.*2\b"):
            log.poll(10, 5)

    def test_a_position_after_the_end_is_an_error_that_names_both(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        fill(partition, 13)
        log.seek(77)
        with pytest.raises(OffsetGone, match=r"77.*13"):
            log.poll(10, 5)


class TestTimes:
    @pytest.mark.parametrize(
        ("time", "offset"),
        [(0, 0), (-5, 0), (NOON, 0), (NOON + 1, 1), (NOON + 9, 1), (NOON + 10, 1), (NOON + 11, None)],
    )
    def test_a_lookup_by_time_returns_the_first_offset_with_that_or_a_later_time(
        self, partition: Partition, log: PartitionLog, time: int, offset: int | None
    ) -> None:
        for late in (0, 10, 5, 10):
            partition.append(b"value", NOON + late)
        assert log.offset_at(time) == offset

    def test_an_empty_log_has_no_times(self, log: PartitionLog) -> None:
        assert log.offset_at(0) is None

    def test_deleted_records_are_not_found(self, partition: Partition, log: PartitionLog) -> None:
        fill(partition, 4)
        partition.delete_before(2)
        assert log.offset_at(NOON) == 2

    def test_a_record_of_an_open_transaction_is_found_once_that_has_ended(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        fill(partition, 1)
        transaction = partition.begin()
        transaction.append(b"open", NOON + 100)
        assert log.offset_at(NOON + 100) is None
        transaction.commit()
        assert log.offset_at(NOON + 100) == 1

    def test_an_aborted_record_is_found_although_readers_skip_it(self, partition: Partition, log: PartitionLog) -> None:
        """The first visible record with such a time is after it, with no other in between."""
        fill(partition, 1)
        transaction = partition.begin()
        transaction.append(b"never", NOON + 100)
        transaction.abort()
        partition.append(b"seen", NOON + 100)
        found = log.offset_at(NOON + 100)
        assert found == 1
        log.seek(found)
        assert values(read_on(log)) == [b"seen"]


class TestTheTopic:
    def test_its_id_stays_the_same(self, partition: Partition, log: PartitionLog) -> None:
        before = log.topic_id()
        fill(partition, 1)
        assert log.topic_id() == before

    def test_a_recreated_topic_has_another_id(self, partition: Partition, log: PartitionLog) -> None:
        before = log.topic_id()
        partition.recreate()
        assert log.topic_id() != before

    def test_a_recreated_topic_is_not_read_from_the_previous_position(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        """Not even if it has so many records that the position exists."""
        fill(partition, 2)
        log.topic_id()
        log.seek(0)
        assert offsets(read_on(log)) == [0, 1]
        partition.recreate()
        fill(partition, 5)
        with pytest.raises(TopicUnfit, match="recreated"):
            poll_on(log)

    def test_a_recreated_topic_is_read_after_its_id_was_requested(
        self, partition: Partition, log: PartitionLog
    ) -> None:
        fill(partition, 3)
        log.topic_id()
        log.seek(3)
        log.poll(10, 0.2)
        partition.recreate()
        partition.append(b"new", NOON)
        log.topic_id()
        log.seek(0)
        assert values(read_on(log)) == [b"new"]


class TestUnreachableBrokers:
    def test_requests_raise_an_error(self, partition: Partition) -> None:
        log = partition.gone()
        with pytest.raises(LogUnreachable):
            log.topic_id()
        with pytest.raises(LogUnreachable):
            log.ends()
        with pytest.raises(LogUnreachable):
            log.offset_at(NOON)
        with pytest.raises(LogUnreachable):
            answered(log.request_ends())

    def test_reading_raises_an_error_and_can_be_retried(self, partition: Partition) -> None:
        log = partition.gone()
        log.seek(0)
        for _ in range(3):
            with pytest.raises(LogUnreachable):
                log.poll(10, 0.2)

    def test_mirroring_is_skipped(self, partition: Partition) -> None:
        partition.gone().mirror(5)
