import pytest

from strandline.jobs.importing.text_parts import TO_THE_END, PlannedFile, TextPart
from strandline.jobs.sources.files import SourceFile
from strandline.node.bulk.placing import SPARK_FROM_BYTES, Where, placed

pytestmark = pytest.mark.unit

PART = 64 << 20


def sources(size: int, name: str = "data.csv") -> list[str]:
    file = PlannedFile(SourceFile(name, size, 0, ""), 0)
    return [TextPart(file, begin, min(begin + PART, size)).to_json() for begin in range(0, size, PART)]


def packed(size: int) -> str:
    file = PlannedFile(SourceFile(f"data-{size}.csv.gz", size, 0, ""), 0)
    return TextPart(file, 0, TO_THE_END).to_json()


@pytest.mark.parametrize(
    ("found", "where"),
    [
        (sources(SPARK_FROM_BYTES), Where.SPARK),
        (sources(SPARK_FROM_BYTES - 1), Where.PROCESS),
        ([], Where.PROCESS),
        # Many small files are little work.
        ([one for name in range(1_000) for one in sources(1_000, f"{name}.csv")], Where.PROCESS),
        # Compressed files hold more than they show, and a single part has nothing to run beside.
        ([packed(SPARK_FROM_BYTES // 8), packed(1)], Where.SPARK),
        ([packed(SPARK_FROM_BYTES)], Where.PROCESS),
    ],
)
def test_large_imports_run_on_spark_unless_it_is_said_otherwise(found: list[str], where: Where) -> None:
    assert placed(Where.AUTO, "import", found) is where
    assert placed(Where.PROCESS, "import", found) is Where.PROCESS
    assert placed(Where.SPARK, "import", found) is Where.SPARK


def test_jobs_that_read_no_files_run_in_the_process_unless_it_is_said_otherwise() -> None:
    assert placed(Where.AUTO, "send", ["{}"] * 1_000) is Where.PROCESS
    assert placed(Where.SPARK, "send", ["{}"]) is Where.SPARK
