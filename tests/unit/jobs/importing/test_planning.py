"""Plans of imports: parts, headers, and what is rejected before anything is written."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.errors import Fatal
from strandline.jobs.importing.planning import ImportOptions, plan_import
from strandline.jobs.importing.spec import Format, ImportSpec
from strandline.jobs.sources.source_errors import SourceUnusable
from strandline.time_range import TimeRange
from support.prometheus_blocks import Chunk, write_block

pytestmark = pytest.mark.unit

MAPPING = {"metric": "cpu", "value": "value", "time": {"column": "time", "unit": "ms"}, "labels": ["host"]}
OPTIONS = ImportOptions(Format.CSV, MAPPING, TimeRange(5, 10), part_bytes=20)
TEXT = "time,host,value\n" + "".join(f"{row},h{row},{row}\n" for row in range(10))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(TEXT)
    return path


def test_parts_follow_each_other_after_the_header(file: Path) -> None:
    plan = plan_import([str(file)], OPTIONS)
    assert plan.parts[0].start == len("time,host,value\n")
    assert [part.end for part in plan.parts[:-1]] == [part.start for part in plan.parts[1:]]
    assert plan.parts[-1].end == len(TEXT)
    assert {part.of.header for part in plan.parts} == {("time", "host", "value")}


def test_without_a_header_the_first_line_is_a_record(file: Path) -> None:
    mapping = {"metric": "cpu", "value": 3, "time": {"column": 1, "unit": "ms"}, "header": False}
    plan = plan_import([str(file)], replace(OPTIONS, mapping=mapping))
    assert plan.parts[0].start == 0


def test_a_job_that_was_planned_before_chunks_had_a_bound_keeps_its_chunks(file: Path) -> None:
    before = json.loads(plan_import([str(file)], OPTIONS).spec.to_json())
    assert before.pop("packed_bytes") > 0
    assert ImportSpec.from_json(json.dumps(before)).packed_bytes == 0


def test_the_hash_of_a_plan_stays_the_same_until_anything_changes(file: Path) -> None:
    plan = plan_import([str(file)], OPTIONS)
    assert plan_import([str(file)], OPTIONS).hash == plan.hash
    assert ImportSpec.from_json(plan.spec.to_json()) == plan.spec
    others = [
        plan_import([str(file)], replace(OPTIONS, part_bytes=30)),
        plan_import([str(file)], replace(OPTIONS, times=TimeRange(5, 11))),
        plan_import([str(file)], replace(OPTIONS, max_record=500)),
        plan_import([str(file)], replace(OPTIONS, mapping={**MAPPING, "labels": []})),
    ]
    file.write_text(TEXT.replace("9", "8"))
    others.append(plan_import([str(file)], OPTIONS))
    assert len({plan.hash, *(other.hash for other in others)}) == 6


def test_a_missing_column_is_named_with_the_existing_ones(file: Path) -> None:
    with pytest.raises(Fatal, match="'usage'") as caught:
        plan_import([str(file)], replace(OPTIONS, mapping={**MAPPING, "value": "usage"}))
    assert "host" in str(caught.value)


def test_a_file_without_lines_is_not_taken_for_csv(tmp_path: Path) -> None:
    path = tmp_path / "garbage"
    path.write_bytes(b"\x00\xff" * 1_000_000)
    with pytest.raises(SourceUnusable, match="can't be imported as CSV"):
        plan_import([str(path)], OPTIONS)


def test_binary_data_is_not_taken_for_csv(tmp_path: Path) -> None:
    path = tmp_path / "photo.csv"
    path.write_bytes(b"\xff\xd8\x00\x10JFIF\n\x01")
    with pytest.raises(SourceUnusable, match=r"photo.csv can't be imported as CSV: its first line has the byte 0x00"):
        plan_import([str(path)], OPTIONS)


def test_csv_without_a_mapping_is_refused_with_the_option_that_gives_one(file: Path) -> None:
    with pytest.raises(Fatal, match="CSV needs a mapping") as refused:
        plan_import([str(file)], replace(OPTIONS, mapping={}))
    assert "--mapping" in refused.value.remedy


def test_a_pattern_names_the_folders_of_several_snapshots(tmp_path: Path) -> None:
    names = ("01HN0000000000000000000000", "01HP0000000000000000000000")
    for position, name in enumerate(names):
        chunk = Chunk([(position * 1_000, 0)])
        write_block(tmp_path / "snapshots" / f"day-{position}", [((("__name__", "m"),), [chunk])], ulid=name)
    plan = plan_import(
        [f"{tmp_path}/snapshots/*"], replace(OPTIONS, format=Format.PROMETHEUS_BLOCKS, mapping={}, part_bytes=1 << 20)
    )
    assert [Path(part.uri).name for part in plan.parts] == list(names)


def test_a_file_is_not_taken_for_a_folder_with_blocks(file: Path) -> None:
    with pytest.raises(Fatal, match=r"data.csv is a file, but Prometheus blocks are folders"):
        plan_import([str(file)], replace(OPTIONS, format=Format.PROMETHEUS_BLOCKS, mapping={}))


def test_an_empty_file_has_no_parts(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert plan_import([str(path)], OPTIONS).parts == ()


@pytest.mark.parametrize("format_", [Format.OPENMETRICS, Format.JSONL])
def test_other_formats_have_no_header(file: Path, format_: Format) -> None:
    plan = plan_import([str(file)], replace(OPTIONS, format=format_, mapping={}))
    assert (plan.parts[0].start, plan.parts[0].of.header) == (0, ())
