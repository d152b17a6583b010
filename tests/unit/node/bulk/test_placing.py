import pytest

from strandline.jobs.importing.text_parts import TO_THE_END, PlannedFile, TextPart
from strandline.jobs.sources.files import SourceFile
from strandline.node.bulk.placement import SPARK_FROM_BYTES, Placement, resolve_placement

pytestmark = pytest.mark.unit

PART = 64 << 20


def sources(size: int, name: str = "data.csv") -> list[str]:
    file = PlannedFile(SourceFile(name, size, 0, ""), 0)
    return [TextPart(file, begin, min(begin + PART, size)).to_json() for begin in range(0, size, PART)]


def packed(size: int) -> str:
    file = PlannedFile(SourceFile(f"data-{size}.csv.gz", size, 0, ""), 0)
    return TextPart(file, 0, TO_THE_END).to_json()


@pytest.mark.parametrize(
    ("found", "placement"),
    [
        (sources(SPARK_FROM_BYTES), Placement.SPARK),
        (sources(SPARK_FROM_BYTES - 1), Placement.PROCESS),
        ([], Placement.PROCESS),
        # Many small files need little work.
        ([one for name in range(1_000) for one in sources(1_000, f"{name}.csv")], Placement.PROCESS),
        # Compressed files contain more than their size indicates, and a single part can't run in parallel.
        ([packed(SPARK_FROM_BYTES // 8), packed(1)], Placement.SPARK),
        ([packed(SPARK_FROM_BYTES)], Placement.PROCESS),
    ],
)
def test_large_imports_run_on_spark_by_default(found: list[str], placement: Placement) -> None:
    assert resolve_placement(Placement.AUTO, "import", found) is placement
    assert resolve_placement(Placement.PROCESS, "import", found) is Placement.PROCESS
    assert resolve_placement(Placement.SPARK, "import", found) is Placement.SPARK


def test_jobs_that_read_no_files_run_in_the_process_by_default() -> None:
    assert resolve_placement(Placement.AUTO, "send", ["{}"] * 1_000) is Placement.PROCESS
    assert resolve_placement(Placement.SPARK, "send", ["{}"]) is Placement.SPARK
