"""Numbers in JSON, in the format of Prometheus."""

import math
import struct
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.http.api.kernels.decimals import MAX_TIME_LENGTH, MAX_VALUE_LENGTH, write_time, write_value

pytestmark = pytest.mark.unit


def written(value: float) -> str:
    out = np.zeros(MAX_VALUE_LENGTH, dtype=np.uint8)
    end = write_value(np.float64(value).view(np.uint64), out, 0)
    assert not out[end:].any()
    return out[:end].tobytes().decode()


def time_written(milliseconds: int) -> str:
    out = np.zeros(MAX_TIME_LENGTH, dtype=np.uint8)
    return out[: write_time(milliseconds, out, 0)].tobytes().decode()


# Go's format 'f' with the fewest digits, and 'e' below 1e-6 and from 1e21 on, with two digits of exponent.
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (10.0, "10"),
        (1e6, "1000000"),
        (123456789.0, "123456789"),
        (0.1, "0.1"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1 / 3, "0.3333333333333333"),
        (100.25, "100.25"),
        (1e15 + 0.5, "1000000000000000.5"),
        (2.0**53, "9007199254740992"),
        (2.0**53 + 2, "9007199254740994"),
        # Fewer digits than the integer has are enough to read it back.
        (2.0**63, "9223372036854776000"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (math.nextafter(1e21, 0), "999999999999999900000"),
        (1e-6, "0.000001"),
        (1.25e-6, "0.00000125"),
        (math.nextafter(1e-6, 0), "9.999999999999997e-07"),
        (1e-7, "1e-07"),
        (-1.5e-10, "-1.5e-10"),
        (5e-324, "5e-324"),
        (2.2250738585072014e-308, "2.2250738585072014e-308"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (-1.7976931348623157e308, "-1.7976931348623157e+308"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
        (-math.nan, "NaN"),
    ],
)
def test_values_are_formatted_as_in_go(value: float, expected: str) -> None:
    assert written(value) == expected


def shortest(value: float) -> str:
    """The same by Python's own conversion, which also gives the fewest digits."""
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).lstrip("0") or "0"
    minus = "-" if sign else ""
    if value and not 1e-6 <= abs(value) < 1e21:
        power = int(exponent) + len(text) - 1
        text = text.rstrip("0")
        point = f"{text[0]}.{text[1:]}" if len(text) > 1 else text
        return f"{minus}{point}e{'-' if power < 0 else '+'}{abs(power):02d}"
    text = format(abs(Decimal(repr(value))), "f")
    return minus + (text.rstrip("0").rstrip(".") if "." in text else text)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_value_has_the_fewest_digits_that_are_read_back_the_same(value: float) -> None:
    assert written(value) == shortest(value)
    assert float(written(value)) == value


@given(st.integers(0, 2**64 - 1))
def test_any_bits_are_written(bits: int) -> None:
    (value,) = struct.unpack("<d", struct.pack("<Q", bits))
    text = written(value)
    assert len(text) <= 25
    if math.isfinite(value):
        assert text == shortest(value)


@given(st.integers(-1074, 1023), st.integers(-2, 2))
def test_values_around_powers_of_two_have_the_fewest_digits(power: int, steps: int) -> None:
    value = np.float64(2.0**power)
    for _ in range(abs(steps)):
        value = np.nextafter(value, np.inf if steps > 0 else 0)
    if np.isfinite(value):
        assert written(float(value)) == shortest(float(value))


@given(st.integers(-(10**9), 10**9), st.integers(0, 6))
def test_values_with_few_decimals_keep_them(number: int, decimals: int) -> None:
    value = float(Decimal(number).scaleb(-decimals))
    assert Decimal(written(value)) == Decimal(number).scaleb(-decimals)


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [(0, "0"), (1000, "1"), (1500, "1.500"), (1, "0.001"), (10, "0.010"), (1435781451781, "1435781451.781"),
     (-1, "-0.001"), (-1500, "-1.500"), (2**53, "9007199254740.992")],
)  # fmt: skip
def test_times_are_seconds_with_three_decimals_or_none(milliseconds: int, expected: str) -> None:
    assert time_written(milliseconds) == expected
