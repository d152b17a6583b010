import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.settings.units import ByteSize, Duration

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0s", 0),
        ("500ms", 500),
        ("30s", 30_000),
        ("5m", 300_000),
        ("1h", 3_600_000),
        ("2d", 172_800_000),
        (" 7S ", 7_000),
    ],
)
def test_a_duration_is_an_integer_and_a_unit(text: str, milliseconds: int) -> None:
    assert Duration.parse(text).milliseconds == milliseconds


@pytest.mark.parametrize(
    ("text", "count"), [("1k", 1024), ("512m", 512 << 20), ("1g", 1 << 30), ("1G", 1 << 30), ("2t", 2 << 40)]
)
def test_a_size_is_an_integer_and_a_unit_of_1024s(text: str, count: int) -> None:
    assert ByteSize.parse(text).bytes == count


@pytest.mark.parametrize("text", ["", "30", "s", "1.5h", "-1s", "3 s", "1h30m", "٣s", 30, 1.5, True, None, ["1s"]])
def test_a_text_without_unit_or_integer_is_not_a_duration(text: object) -> None:
    with pytest.raises(ValueError, match=r"^not a duration$"):
        Duration.parse(text)


@pytest.mark.parametrize("text", ["", "1024", "g", "1.5g", "1gb", "1gib", "1 g", 1024, None])
def test_a_text_without_unit_or_integer_is_not_a_size(text: object) -> None:
    with pytest.raises(ValueError, match=r"^not a size$"):
        ByteSize.parse(text)


def test_the_hint_names_every_unit_and_an_example() -> None:
    assert Duration.hint() == 'Write an integer and one of ms, s, m, h, d, such as "30s" or "5m"'
    assert ByteSize.hint() == 'Write an integer and one of k, m, g, t, such as "512m" or "1g"'


@given(st.integers(0, 10**12))
def test_a_duration_reads_back_from_its_text(milliseconds: int) -> None:
    duration = Duration(milliseconds)
    assert Duration.parse(str(duration)) == duration


@given(st.integers(0, 10**9))
def test_a_size_reads_back_from_its_text(kibibytes: int) -> None:
    size = ByteSize(kibibytes * 1024)
    assert ByteSize.parse(str(size)) == size


def test_text_takes_the_largest_unit_that_leaves_no_fraction() -> None:
    assert [str(Duration.parse(text)) for text in ("120s", "90s", "36h", "0s")] == ["2m", "90s", "36h", "0ms"]
    assert [str(ByteSize.parse(text)) for text in ("1024m", "1536m", "2048k", "0g")] == ["1g", "1536m", "2m", "0k"]
    assert str(ByteSize(1000)) == "1000"


def test_quantities_compare_by_amount() -> None:
    assert Duration.parse("60s") == Duration.parse("1m") < Duration.parse("61s")
    assert ByteSize.parse("1023m") < ByteSize.parse("1g")
    assert Duration.parse("1500ms").seconds == 1.5
