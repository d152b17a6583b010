import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.jobs.landing.progress import (
    MAX_METADATA,
    Landed,
    MetadataTooLong,
    PartIdentity,
    Progress,
    ProgressUnreadable,
    decode_progress,
    encode_progress,
)

pytestmark = pytest.mark.unit

PART = PartIdentity("metrics", "import-1", 3)
NUMBERS = st.integers(0, 2**63 - 1)


@given(st.integers(1, 10**6), NUMBERS, st.lists(NUMBERS, max_size=12))
def test_progress_is_decoded_as_it_was_encoded(chunks: int, position: int, counts: list[int]) -> None:
    landed = Landed(chunks, Progress(position, tuple(counts)))
    text = encode_progress(landed)
    assert decode_progress(PART, chunks, text) == landed
    assert set(text) <= set("0123456789 ")


def test_a_part_names_its_producer_and_its_group_by_dataset_job_and_number() -> None:
    assert PART.name == "metrics.import-1.3"
    assert str(PART) == "part 3 of job import-1"


@pytest.mark.parametrize(("job", "part"), [("", 1), ("a.b", 1), ("a", -1)])
def test_an_identity_that_others_could_share_is_refused(job: str, part: int) -> None:
    with pytest.raises(ValueError, match="must have no dot"):
        PartIdentity("metrics", job, part)


def test_counts_past_the_limit_are_refused() -> None:
    fits = Progress(0, (1,) * ((MAX_METADATA - 5) // 2))
    assert len(encode_progress(Landed(1, fits))) == MAX_METADATA - 1
    with pytest.raises(MetadataTooLong, match="over the limit of 1000"):
        encode_progress(Landed(1, Progress(0, (*fits.counts, 1))))


@pytest.mark.parametrize(
    ("chunks", "metadata"),
    [(1, ""), (1, "whatever"), (1, "1 1"), (1, "2 1 0"), (2, "1 1 0"), (0, "1 0 0"), (1, "1 1 -5"), (1, "1 1 0 x")],
)
def test_metadata_of_another_program_is_not_taken_for_progress(chunks: int, metadata: str) -> None:
    with pytest.raises(ProgressUnreadable, match="what has landed of part 3 of job import-1 is not known"):
        decode_progress(PART, chunks, metadata)


@pytest.mark.parametrize(("position", "counts"), [(-1, ()), (0, (1, -1))])
def test_negative_numbers_are_refused(position: int, counts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        Progress(position, counts)
