"""Imports from a real S3-compatible server, exports to it, and what its errors look like.

The store and Kafka are in memory; the server checks signatures and permissions as S3 does.
"""

import gzip
import json
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import structlog

from strandline.errors import Fatal, Retryable, StrandlineError
from strandline.jobs.exporting.day_manifest import NAME, DayAction, DayManifest
from strandline.jobs.exporting.target import Target, TargetUnreachable, TargetUnusable
from strandline.jobs.formats.prometheus_blocks import find_blocks
from strandline.jobs.importing.part_sources import chunks_of
from strandline.jobs.importing.planning import ImportOptions, ImportPlan, plan_import
from strandline.jobs.importing.spec import Format
from strandline.jobs.sources import s3
from strandline.jobs.sources.files import file_system, find_files, find_folders, identify, require_unchanged
from strandline.jobs.sources.source_errors import SourceChanged, SourceUnreachable, SourceUnusable
from strandline.recovery.periods import HOUR
from strandline.spark.staging import is_importing, mark_importing, remove_staged, stage
from strandline.store.bulk_jobs import BulkJobState
from support.export_worlds import ExportWorld
from support.job_worlds import JobWorld
from support.prometheus_blocks import Chunk, write_block
from support.s3_server import Keys, S3Server, s3_server
from support.stored_samples import DAY, START, Sample, rows_of_table

pytestmark = pytest.mark.system

MINUTE = 60_000
CSV = ImportOptions(
    Format.CSV,
    {"metric": "m", "value": "v", "time": {"column": "t", "unit": "ms"}, "labels": ["host"]},
    part_bytes=3_000,
    chunk_bytes=1_000,
)
CSV_LARGE = ImportOptions(Format.CSV, CSV.mapping, part_bytes=200_000)
Log = list[structlog.typing.EventDict]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        yield running


@pytest.fixture(autouse=True)
def environment(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    server.use(monkeypatch)


@pytest.fixture
def log() -> Iterator[Log]:
    with structlog.testing.capture_logs() as captured:
        yield captured


def rows(first: int, count: int) -> bytes:
    """A CSV file, whose values are unique over all files."""
    lines = [f"{START + number},h{number % 7},{number}" for number in range(first, first + count)]
    return "\n".join(["t,host,v", *lines]).encode()


def values(world: JobWorld) -> Counter[float]:
    """How often each value is in the topic."""
    return Counter(value for (_, _, value), times in world.samples().items() for _ in range(times))


def without_secrets(server: S3Server, texts: Sequence[object]) -> bool:
    """Whether no credential is in these texts, nor percent-encoded."""
    joined = "\n".join(map(str, texts))
    known = [part for keys in (server.keys, server.unpermitted) for part in (keys.id, keys.secret)]
    return not any(one in joined or quote(one, safe="") in joined for one in known)


def test_objects_that_match_a_pattern_are_imported_and_each_sample_lands_once(
    server: S3Server, tmp_path: Path, log: Log, capfd: pytest.CaptureFixture[str]
) -> None:
    server.put("in/2026 #1 50%?.csv", rows(0, 400))
    server.put("in/2026-é+b.csv.gz", gzip.compress(rows(1_000, 300)))
    server.put("in/deep/er/c.csv", rows(2_000, 100))
    server.put("in/other.txt", b"not this one")
    world = JobWorld(tmp_path)
    plan = world.planned_from([server.uri("in/**/*.csv*")], CSV)
    per_file = Counter(part.uri for part in plan.parts)
    assert sorted(per_file.values()) == [1, 1, 3]
    assert world.work()
    job = world.board.job("job")
    assert job is not None
    assert job.state is BulkJobState.DONE
    expected = [*range(400), *range(1_000, 1_300), *range(2_000, 2_100)]
    assert values(world) == Counter(map(float, expected))
    written = capfd.readouterr()
    assert without_secrets(server, [job, job.report, *world.board.parts(job), *log, written.out, written.err])
    assert server.uri("in/deep/er/c.csv") in per_file


def test_options_of_a_uri_are_not_part_of_its_pattern(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.put("options/a1.csv", rows(0, 5))
    server.put("options/a2.csv", rows(0, 5))
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
    options = f"?endpoint_override=127.0.0.1:{server.address.partition(':')[2]}&scheme=http&region=us-east-1"
    found = find_files([server.uri(f"options/*.csv{options}")])
    assert [one.uri for one in found] == [server.uri(f"options/a{at}.csv{options}") for at in (1, 2)]
    assert [one.uri for one in find_files([server.uri(f"options/a?.csv{options}")])] == [one.uri for one in found]
    assert len(plan_import([found[0].uri], CSV).parts) == 1
    server.put("options/a[*]?1.csv", rows(0, 5))
    assert [one.uri for one in find_files([server.uri(f"options/a%5B%2A%5D*.csv{options}")])] == [
        server.uri(f"options/a%5B%2A%5D%3F1.csv{options}")
    ]


def test_an_object_that_changed_since_the_plan_is_refused_by_name_and_nothing_lands(
    server: S3Server, tmp_path: Path
) -> None:
    content = rows(0, 20_000)
    server.put("changed.csv", content)
    uri = server.uri("changed.csv")
    world = JobWorld(tmp_path, failures_allowed=0)
    plan = world.planned_from([uri], CSV_LARGE)
    before = identify(uri)
    require_unchanged(before)
    middle = len(content) // 2
    server.put("changed.csv", content[:middle] + b"7" + content[middle + 1 :])
    after = identify(uri)
    # Neither its size nor its ends, and within a second not its time either.
    assert (after.size, after.digest == before.digest) == (before.size, False)
    with pytest.raises(SourceChanged, match="has changed since the job was planned"):
        require_unchanged(before)
    world.work()
    job = world.board.job("job")
    assert job is not None
    assert job.state is BulkJobState.FAILED
    assert all(uri in part.reason and "has changed" in part.reason for part in world.board.parts(job))
    assert len(plan.parts) > 1
    assert not world.samples()


def test_prometheus_blocks_are_read_from_folders_of_objects(server: S3Server, tmp_path: Path) -> None:
    one = [Chunk([(START, 0x3FF0000000000000)])]
    write_block(tmp_path, [((("__name__", "m"), ("host", f"h{at:02d}")), one) for at in range(20)])
    for path in tmp_path.rglob("*"):
        if path.is_file():
            server.put(f"tsdb/{path.relative_to(tmp_path)}", path.read_bytes())
    plan = plan_import([server.uri("tsdb")], ImportOptions(Format.PROMETHEUS_BLOCKS, {}))
    assert sample_count(plan) == 20
    assert find_folders([server.uri("ts*")]) == [server.uri("tsdb")]
    assert len(find_blocks(*file_system(server.uri("tsdb")))) == 1


def sample_count(plan: ImportPlan) -> int:
    """The number of samples of a plan."""
    count = 0
    for part in plan.parts:
        with chunks_of(part, plan.spec) as chunks:
            count += sum(len(block.times) for chunk in chunks for _, block in chunk.blocks)
    return count


def scraped(hour: int, value: float = 0.0) -> list[Sample]:
    return [
        ({"__name__": "m", "host": f"h{number}"}, hour * HOUR + minute * MINUTE, value + number + minute)
        for number in range(4)
        for minute in (5, 35)
    ]


def exported(server: S3Server, folder: str, day: int) -> tuple[DayManifest, list[object]]:
    """The manifest of a day, and the samples of its files."""
    date = pa.scalar(START + day * DAY, pa.timestamp("ms")).as_py().date()
    path = f"{folder}/day={date}/{NAME}"
    manifest = DayManifest.from_json(server.get(path), path)
    files = [f"{server.bucket}/{folder}/day={date}/{file.name}" for file in manifest.files]
    tables = [pq.ParquetFile(server.client().open_input_file(file)).read() for file in files]
    return manifest, [row for table in tables for row in rows_of_table(table)]


def test_days_are_exported_once_and_again_when_their_samples_change(server: S3Server, tmp_path: Path, log: Log) -> None:
    world = ExportWorld(tmp_path, to=server.uri("out/m"))
    first_hour = START // HOUR
    for hour in range(first_hour, first_hour + 48):
        world.stored.write(0, hour, scraped(hour))
    options = world.options(days=2)
    assert world.export(options) == [DayAction.EXPORT, DayAction.EXPORT]
    for day in (0, 1):
        begin = START + day * DAY
        manifest, samples = exported(server, "out/m", day)
        assert samples == world.stored.expected(begin, begin + DAY)
        assert (manifest.revision, len(manifest.files) > 1) == (1, True)
    objects = server.keys_below("out")
    assert world.export(options) == [DayAction.UNCHANGED, DayAction.UNCHANGED]
    assert server.keys_below("out") == objects
    world.stored.write(0, first_hour + 48, scraped(first_hour, 100.0))
    assert world.export(options) == [DayAction.EXPORT, DayAction.UNCHANGED]
    manifest, samples = exported(server, "out/m", 0)
    assert (manifest.revision, samples) == (2, world.stored.expected(START, START + DAY))
    # Neither plans nor files of the first revision are left.
    of_days = [exported(server, "out/m", day)[0] for day in (0, 1)]
    valid = {f"out/m/{one.day.folder}/{name}" for one in of_days for name in (NAME, *(file.name for file in one.files))}
    assert set(server.keys_below("out")) == valid
    back = plan_import([server.uri("out/m/day=*/*.parquet")], ImportOptions(Format.PARQUET, {}))
    assert sample_count(back) == 2 * 24 * 4 * 2
    rows_of_jobs = [row for job in world.board.jobs() for row in (job, *world.board.parts(job))]
    assert without_secrets(server, [*rows_of_jobs, *log, *map(server.get, valid)])


def test_partitions_of_a_frame_are_staged_imported_and_removed(server: S3Server) -> None:
    columns: dict[str, pa.Array] = {
        "metric": pa.array(["m", "m"]),
        "labels": pa.array([[("host", "a")], None], pa.map_(pa.string(), pa.string())),
        "time": pa.array([START * 1000, START * 1000], pa.timestamp("us", tz="UTC")),
        "value": pa.array([1.0, 2.0]),
    }
    staged = stage(server.uri("staging"), [pa.RecordBatch.from_pydict(columns)])
    assert staged is not None
    assert not is_importing([staged])
    mark_importing([staged])
    assert is_importing([staged])
    assert sample_count(plan_import([staged.uri], ImportOptions(Format.PARQUET, {}))) == 2
    remove_staged([staged])
    assert not is_importing([staged])
    assert not server.keys_below("staging")


Use = Callable[[str], object]
USES: dict[str, Use] = {
    "pattern": lambda uri: find_files([f"{uri}/*.csv"]),
    "file": lambda uri: find_files([uri]),
    "parquet": lambda uri: plan_import([f"{uri}/*.parquet"], ImportOptions(Format.PARQUET, {})),
    "blocks": lambda uri: plan_import([uri], ImportOptions(Format.PROMETHEUS_BLOCKS, {})),
    "written": lambda uri: Target(uri).write("a", b"1"),
    "read": lambda uri: Target(uri).read("a"),
}


def refused(server: S3Server, use: Use, uri: str) -> StrandlineError:
    """The error of a use, which names the URI and a remedy, and no credential."""
    with pytest.raises(StrandlineError) as raised:
        use(uri)
    error = raised.value
    assert uri in error.message
    assert error.remedy
    assert without_secrets(server, [error])
    return error


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_what_an_operator_has_to_change_is_named(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, use: Use, log: Log
) -> None:
    missing = refused(server, use, "s3://no-such-bucket/a")
    assert isinstance(missing, SourceUnusable | TargetUnusable)
    assert "the bucket does not exist" in missing.message
    keys = server.keys
    for wrong in (Keys(keys.id, keys.secret[::-1]), Keys("AKIAUNKNOWNUNKNOWN00", keys.secret), server.unpermitted):
        server.use(monkeypatch, wrong)
        denied = refused(server, use, server.uri("a"))
        assert isinstance(denied, Fatal)
        assert "Check the credentials" in denied.remedy
    assert without_secrets(server, log)


@pytest.mark.parametrize("use", [USES["pattern"], USES["written"]], ids=["pattern", "written"])
@pytest.mark.parametrize("accepts", [True, False], ids=["silent", "closed"])
def test_an_endpoint_that_does_not_answer_is_given_up_soon(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, use: Use, *, accepts: bool
) -> None:
    monkeypatch.setattr(s3, "SILENCE_TIMEOUT_S", 1.0)
    monkeypatch.setattr(s3, "ATTEMPTS", 1)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        if accepts:
            nobody.listen()
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        began = time.monotonic()
        error = refused(server, use, server.uri("a"))
    assert isinstance(error, SourceUnreachable | TargetUnreachable)
    assert isinstance(error, Retryable)
    assert "AWS_ENDPOINT_URL_S3" in error.remedy
    assert time.monotonic() - began < 20


def test_credentials_may_be_in_a_file_that_the_environment_names(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.put("by-file.csv", rows(0, 3))
    file = tmp_path / "credentials"
    keys = server.keys
    file.write_text(f"[default]\naws_access_key_id = {keys.id}\naws_secret_access_key = {keys.secret}\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    # As in another process: a client finds the file when it is made.
    s3._client.cache_clear()
    (found,) = find_files([server.uri("by-*.csv")])
    assert found.size == len(rows(0, 3))
    assert without_secrets(server, [json.dumps(part.to_json()) for part in plan_import([found.uri], CSV).parts])
    s3._client.cache_clear()
