import random
import struct
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from strandline.jobs.formats.kernels.decimals import (
    BAD,
    EXACT,
    HARD,
    NORMAL_NAN,
    OUT_OF_RANGE,
    read_float,
    read_millis,
)
from support.damaged_texts import guarded
from support.sample_blocks import bits

pytestmark = pytest.mark.unit

UNIT = st.sampled_from([3, 0, -3, -6])


@njit
def _read_all(base, starts, values, behind, certainty):  # type: ignore[no-untyped-def]
    for i in range(len(values)):
        value, end, sure = read_float(base + starts[i], base + starts[i + 1])
        values[i], behind[i], certainty[i] = value, end - base if end >= 0 else BAD, sure


def read_floats(texts: list[bytes]) -> tuple[list[float], list[bool], list[bool]]:
    """The number of each text, whether all of it was parsed, and whether the kernel has left it to Python."""
    starts = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in texts], out=starts[1:])
    data = guarded(b"".join(texts))
    values = np.empty(len(texts))
    behind, certainty = np.empty(len(texts), dtype=np.int64), np.empty(len(texts), dtype=np.int64)
    _read_all(data.ctypes.data, starts, values, behind, certainty)
    assert set(certainty.tolist()) <= {EXACT, HARD}
    return values.tolist(), (behind == starts[1:]).tolist(), (certainty == HARD).tolist()


def halfway(rng: random.Random) -> str:
    """The decimal digits of a number exactly between two doubles, or one digit off."""
    with localcontext() as context:
        context.prec = 800
        mantissa, exponent = rng.getrandbits(53) | (1 << 52), rng.choice([-1074, -60, -20, -5, 0, 3, 10, 60])
        exact = Decimal(2 * mantissa + 1) * Decimal(2) ** (exponent - 1)
        text = f"{exact:f}" if abs(exponent) < 100 else f"{exact:e}"
    if rng.random() < 0.3 and "e" not in text:
        text += ("" if "." in text else ".") + "0" * rng.randrange(5) + "1"
    return text


def any_number(rng: random.Random) -> str:
    match rng.randrange(8):
        case 0:
            return repr(struct.unpack("<d", rng.randbytes(8))[0]).replace("nan", "1").replace("inf", "2")
        case 1:
            return repr(rng.random() * 10 ** rng.randrange(-12, 22))
        case 2:
            return f"{rng.randrange(10 ** rng.randrange(1, 26))}e{rng.randrange(-345, 312)}"
        case 3:
            return f"-{rng.randrange(10**9)}.{rng.randrange(10 ** rng.randrange(1, 40))}"
        case 4:
            return halfway(rng)
        case 5:
            zeros = "0" * rng.randrange(30)
            return f"{zeros}.{'0' * rng.randrange(30)}{rng.randrange(10 ** rng.randrange(1, 25))}"
        case 6:
            return f"+{rng.randrange(10 ** rng.randrange(1, 21))}.{'0' * rng.randrange(4)}"
        case _:
            return f"{rng.uniform(0, 1000):.{rng.randrange(8)}f}"


HARD_CASES = [
    "9007199254740993",
    "9007199254740992.99999999999999999999",
    "2.2250738585072011e-308",
    "2.2250738585072014e-308",
    "4.9406564584124654e-324",
    "2.4703282292062327e-324",
    "1.7976931348623157e308",
    "1.7976931348623159e308",
    "1e400",
    "1e-400",
    "0e999999999999",
    "-0",
    "-0.0e5",
    "1e23",
    "8.5e22",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999",
    "0." + "0" * 400 + "1",
    "1" + "0" * 400 + "e-400",
    "123456789012345678901234567890e-15",
    "6929495644600919.5",
    "3.2378839133029012895883524125015321748630944236626e+31",
]


def test_200000_decimal_texts_give_the_same_bits_as_python() -> None:
    rng = random.Random(20)  # noqa: S311
    texts = [*HARD_CASES, *(any_number(rng) for _ in range(200_000))]
    values, whole, hard = read_floats([text.encode() for text in texts])
    assert all(whole)
    wrong = [
        text
        for text, value, left in zip(texts, values, hard, strict=True)
        if not left and bits(value) != bits(float(text))
    ]
    assert wrong == []


def test_shortest_forms_of_ordinary_doubles_never_leave_the_kernel() -> None:
    rng = random.Random(21)  # noqa: S311
    texts = [repr(rng.uniform(-1, 1) * 10.0 ** rng.randrange(-30, 30)).encode() for _ in range(20_000)]
    _, whole, hard = read_floats(texts)
    assert all(whole)
    assert not any(hard)


@pytest.mark.parametrize("text", ["NaN", "nan", "+NaN", "-nan", "NAN"])
def test_every_spelling_of_nan_is_the_nan_that_prometheus_stores(text: str) -> None:
    values, whole, _ = read_floats([text.encode()])
    assert whole == [True]
    assert bits(values[0]) == int(NORMAL_NAN).to_bytes(8, "little")


@pytest.mark.parametrize("text", ["Inf", "+Inf", "-Inf", "inf", "Infinity", "-infinity", "INF"])
def test_infinity_is_read_in_any_case(text: str) -> None:
    assert read_floats([text.encode()])[:2] == ([float(text)], [True])


@pytest.mark.parametrize(
    "text", ["", "+", "-", ".", "e5", "1e", "1e+", "--1", "1_0", "0x10", "infin", "nano", "1.2.3", " 1"]
)
def test_a_text_that_is_not_a_number_is_not_parsed_completely(text: str) -> None:
    assert read_floats([text.encode()])[1] == [False]


@given(st.integers(-(10**21), 10**21), st.integers(0, 24), UNIT)
def test_times_are_cut_to_milliseconds_exactly(digits: int, places: int, shift: int) -> None:
    text = f"{Decimal(digits).scaleb(-places):f}".encode()
    data = guarded(text)
    exact = int(Fraction(digits, 10**places) * Fraction(10) ** shift)
    found, behind = read_millis(data.ctypes.data, data.ctypes.data + len(text), shift)
    if abs(exact) < 1 << 63:
        assert (found, behind) == (exact, data.ctypes.data + len(text))
    else:
        assert behind == OUT_OF_RANGE
