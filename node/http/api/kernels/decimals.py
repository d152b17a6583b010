"""Numbers as Prometheus writes them into JSON.

A value has the fewest digits that are read back as the same double, and of those the nearest, like the conversions of
Go and Python. The digits are computed as in R. Giulietti's "The Schubfach way to render doubles": three products with a
128-bit power of ten determine between which decimals of the right length the double is. Values below 1e-6 or from 1e21
on are written with an exponent, as in Prometheus.
"""

import numpy as np
from numba import njit

from strandline.kernels.machine import multiply_wide

MAX_VALUE_LENGTH = 32
MAX_TIME_LENGTH = 24

_MIN_EXPONENT, _MAX_EXPONENT = -292, 324  # Of the powers of ten that doubles need.


def _powers_of_ten():
    """10 to each exponent, as the 128 leading bits, rounded up: high and low words."""
    powers = np.zeros((_MAX_EXPONENT - _MIN_EXPONENT + 1, 2), dtype=np.uint64)
    for exponent in range(_MIN_EXPONENT, _MAX_EXPONENT + 1):
        if exponent >= 0:
            power = 10**exponent
            extra = power.bit_length() - 128
            leading = power << -extra if extra <= 0 else -(-power >> extra)
        else:
            power = 10**-exponent
            leading = -(-(1 << (power.bit_length() + 127)) // power)
        powers[exponent - _MIN_EXPONENT] = leading >> 64, leading & 0xFFFF_FFFF_FFFF_FFFF
    return powers


POWERS = _powers_of_ten()
SIGN, FRACTION = np.uint64(1 << 63), np.uint64((1 << 52) - 1)
HIDDEN = np.uint64(1 << 52)
ZERO, ONE, TWO, FOUR, TEN, FORTY = (np.uint64(number) for number in (0, 1, 2, 4, 10, 40))
EXPONENT_SHIFT, EXPONENT_MASK = np.uint64(52), np.uint64(0x7FF)
DIGIT, MINUS, PLUS, POINT, LETTER_E = np.uint8(48), np.uint8(45), np.uint8(43), np.uint8(46), np.uint8(101)


@njit(cache=True)
def _round_to_odd(high, low, factor):
    _, carried = multiply_wide(low, factor)
    middle, top = multiply_wide(high, factor)
    total = middle + carried
    if total < middle:
        top += ONE
    return top | ONE if total > ONE else top


@njit(cache=True)
def shortest(bits):
    """The digits of a positive, finite double as an integer, and the power of ten to multiply it with. The integer may
    end in zeros.
    """
    fraction = bits & FRACTION
    biased = np.int64((bits >> EXPONENT_SHIFT) & EXPONENT_MASK)
    if biased != 0:
        c = fraction | HIDDEN
        q = biased - 1075
        if -53 < q <= 0 and c & ((ONE << np.uint64(-q)) - ONE) == ZERO:
            return c >> np.uint64(-q), 0
    else:
        c = fraction
        q = -1074
    closer = fraction == ZERO and biased > 1
    odd = c & ONE
    k = (q * 1262611 - (524031 if closer else 0)) >> 22
    h = np.uint64(q + ((-k * 1741647) >> 19) + 1)
    high, low = POWERS[-k - _MIN_EXPONENT, 0], POWERS[-k - _MIN_EXPONENT, 1]
    below = _round_to_odd(high, low, (FOUR * c - (ONE if closer else TWO)) << h) + odd
    value = _round_to_odd(high, low, (FOUR * c) << h)
    above = _round_to_odd(high, low, (FOUR * c + TWO) << h) - odd
    s = value >> TWO
    if s >= TEN:
        # Perhaps one digit less is enough.
        short = s // TEN
        down, up = below <= FORTY * short, FORTY * short + FORTY <= above
        if down != up:
            return (short + ONE if up else short), k + 1
    down, up = below <= FOUR * s, FOUR * s + FOUR <= above
    if down != up:
        return (s + ONE if up else s), k
    middle = FOUR * s + TWO
    return (s + ONE if value > middle or (value == middle and s & ONE != ZERO) else s), k


@njit(cache=True)
def write_integer(number, out, at):
    """The digits of an unsigned 64-bit integer."""
    length, rest = 1, number // TEN
    while rest != ZERO:
        rest //= TEN
        length += 1
    for i in range(at + length - 1, at - 1, -1):
        out[i] = DIGIT + np.uint8(number % TEN)
        number //= TEN
    return at + length


@njit(cache=True)
def write_time(milliseconds, out, at):
    """A time in seconds, with three decimals unless they are zero."""
    if milliseconds < 0:
        out[at] = MINUS
        at += 1
        milliseconds = -milliseconds
    at = write_integer(np.uint64(milliseconds // 1000), out, at)
    thousandths = milliseconds % 1000
    if thousandths != 0:
        out[at] = POINT
        out[at + 1] = DIGIT + np.uint8(thousandths // 100)
        out[at + 2] = DIGIT + np.uint8(thousandths // 10 % 10)
        out[at + 3] = DIGIT + np.uint8(thousandths % 10)
        at += 4
    return at


@njit(cache=True)
def _write_three(a, b, c, out, at):
    out[at], out[at + 1], out[at + 2] = a, b, c
    return at + 3


@njit(cache=True)
def _write_with_exponent(digits, exponent, out, at):
    """`d.ddde+dd`, for digits without trailing zeros."""
    end = write_integer(digits, out, at + 1)
    length = end - at - 1
    out[at] = out[at + 1]
    if length > 1:
        out[at + 1] = POINT
        at = end
    else:
        at += 1
    power = exponent + length - 1
    out[at] = LETTER_E
    out[at + 1] = MINUS if power < 0 else PLUS
    at += 2
    power = abs(power)
    if power < 10:
        out[at] = DIGIT
        at += 1
    return write_integer(np.uint64(power), out, at)


@njit(cache=True)
def write_value(bits, out, at):
    """A double, given by its bits, without quotes."""
    if (bits >> EXPONENT_SHIFT) & EXPONENT_MASK == EXPONENT_MASK:
        if bits & FRACTION != ZERO:
            return _write_three(np.uint8(78), np.uint8(97), np.uint8(78), out, at)
        out[at] = MINUS if bits & SIGN != ZERO else PLUS
        return _write_three(np.uint8(73), np.uint8(110), np.uint8(102), out, at + 1)
    if bits & SIGN != ZERO:
        out[at] = MINUS
        at += 1
        bits &= ~SIGN
    if bits == ZERO:
        out[at] = DIGIT
        return at + 1
    digits, exponent = shortest(bits)
    if exponent == 0:
        return write_integer(digits, out, at)
    while digits % TEN == ZERO:
        digits //= TEN
        exponent += 1
    # The bits of positive doubles compare like integers: 1e-6 and 1e21.
    if bits < np.uint64(0x3EB0C6F7A0B5ED8D) or bits >= np.uint64(0x444B1AE4D6E2EF50):
        return _write_with_exponent(digits, exponent, out, at)
    if exponent >= 0:
        at = write_integer(digits, out, at)
        for _ in range(exponent):
            out[at] = DIGIT
            at += 1
        return at
    # Leading zeros, so that there is a digit before the point.
    begin = at
    length, rest = 1, digits // TEN
    while rest != ZERO:
        rest //= TEN
        length += 1
    integer_digits = max(length + exponent, 1)
    end = begin + max(length, 1 - exponent) + 1
    i = end - 1
    point = begin + integer_digits
    while i >= begin:
        if i == point:
            out[i] = POINT
        else:
            out[i] = DIGIT + np.uint8(digits % TEN)
            digits //= TEN
        i -= 1
    return end
