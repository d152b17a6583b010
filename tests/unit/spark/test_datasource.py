"""What the data source refuses, and what it stages, without a Spark session."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from strandline.clock import ManualClock
from strandline.index.selectors import InvalidSelector
from strandline.jobs.sources.source_errors import SourceUnusable
from strandline.node.bulk import spark_source
from strandline.node.bulk.spark_source import NotLanded, OptionUnusable, pin_read, settings_of
from strandline.node.settings.problems import SettingsError
from strandline.spark.datasource import StrandlineDataSource, WriteRefused
from strandline.spark.staging import remove_staged, stage

pytestmark = pytest.mark.unit

FRAME = StructType(
    [StructField(name, StringType()) for name in ("metric", "labels", "time")] + [StructField("value", DoubleType())]
)


def test_overwriting_is_refused_with_the_reason() -> None:
    source = StrandlineDataSource({"staging": "/staging"})
    with pytest.raises(WriteRefused, match="can't overwrite") as refused:
        source.writer(FRAME, True)
    assert '.mode("append")' in refused.value.remedy


def test_a_frame_without_a_column_or_a_folder_to_stage_in_is_refused() -> None:
    with pytest.raises(WriteRefused, match="no column labels, time"):
        StrandlineDataSource({"staging": "/staging"}).writer(StructType([FRAME["metric"], FRAME["value"]]), False)
    with pytest.raises(WriteRefused, match="option staging is missing"):
        StrandlineDataSource({}).writer(FRAME, False)
    with pytest.raises(SourceUnusable, match="holds a user or a password"):
        StrandlineDataSource({"staging": "s3://KEY:SECRET@bucket/staging"}).writer(FRAME, False)
    with pytest.raises(WriteRefused, match="option match is missing"):
        StrandlineDataSource({}).reader(FRAME)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"match": "up{", "start": "2026-11-15"}, InvalidSelector, "not a selector"),
        ({"match": "{}", "start": "2026-11-15"}, InvalidSelector, "without any"),
        ({"match": "up"}, OptionUnusable, "the option start is missing"),
        ({"match": "up", "start": "2026-11-15", "task_samples": "0"}, OptionUnusable, "task_samples is '0'"),
        ({"match": "up", "start": "2026-11-15", "matches": "x"}, OptionUnusable, "no option matches"),
        ({"match": "up", "start": "2026-11-15", "dataset.groups": "x"}, SettingsError, "dataset"),
    ],
)
def test_options_that_can_not_be_used_are_refused_by_name(
    options: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        pin_read(options, ManualClock())


def test_settings_come_from_a_file_and_single_ones_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('[dataset]\nname = "one"\nkafka_retention = "1h"\ngroups = 8\n')
    options = {"config": str(tmp_path / "s.toml"), "match": "up"}
    assert settings_of(options).dataset.groups == 8
    other = settings_of({**options, "dataset.name": "two", "cassandra.contact_points": "10.0.0.1,10.0.0.2"})
    assert (other.dataset.name, other.dataset.groups, list(other.cassandra.contact_points)) == (
        "two",
        8,
        ["10.0.0.1", "10.0.0.2"],
    )


def test_rows_are_staged_in_one_file_and_an_empty_partition_in_none(tmp_path: Path) -> None:
    at = datetime(2026, 11, 15, tzinfo=UTC)
    # Another order of columns, one more of them, and large strings, as Spark may give them.
    batch = pa.RecordBatch.from_pydict(
        {
            "value": [1.5],
            "extra": [1],
            "time": pa.array([at], pa.timestamp("us", tz="UTC")),
            "labels": pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string())),
            "metric": pa.array(["up"], pa.large_string()),
        }
    )
    file = stage(str(tmp_path), [batch.slice(0, 0), batch, batch])
    assert file is not None
    assert file.rows == 2
    assert pq.read_table(file.uri).to_pylist() == 2 * [
        {"metric": "up", "labels": [("a", "b")], "time": at, "value": 1.5}
    ]
    remove_staged([file, file])
    assert list(tmp_path.iterdir()) == []
    assert stage(str(tmp_path), [batch.slice(0, 0)]) is None


def test_files_of_a_commit_that_failed_stay_for_its_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.RecordBatch.from_pylist(
        [{"metric": "up", "labels": [("a", "b")], "time": datetime(2026, 11, 15, tzinfo=UTC), "value": 1.0}],
        schema=pa.schema(
            [
                ("metric", pa.string()),
                ("labels", pa.map_(pa.string(), pa.string())),
                ("time", pa.timestamp("us", tz="UTC")),
                ("value", pa.float64()),
            ]
        ),
    )
    writer = StrandlineDataSource({"staging": str(tmp_path)}).writer(FRAME, False)
    landed: list[Sequence[str]] = []

    def fails(_options: object, uris: Sequence[str], _clock: object) -> None:
        landed.append(uris)
        raise NotLanded("job 1 is broken")

    monkeypatch.setattr(spark_source, "import_staged", fails)
    messages = [writer.write(iter([batch])), None, writer.write(iter([])), writer.write(iter([batch]))]
    with pytest.raises(NotLanded):
        writer.commit(messages)
    # As Spark does after a commit that failed.
    writer.abort(messages)
    assert {Path(uri) for uri in landed[0]} == set(tmp_path.glob("*.parquet"))
    assert len(landed[0]) == 2
    monkeypatch.setattr(spark_source, "import_staged", lambda *_: None)
    writer.commit(messages)
    assert list(tmp_path.iterdir()) == []
    # Before a commit they are not needed.
    writer.abort([writer.write(iter([batch]))])
    assert list(tmp_path.iterdir()) == []
