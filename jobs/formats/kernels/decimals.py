"""Parses decimal text to correctly rounded doubles, and to milliseconds.

A number of up to 19 digits is converted in one of two ways. If the digits fit into 53 bits and the power of ten is
small, one multiplication or division of exact doubles is correctly rounded (Clinger). Otherwise the digits are
multiplied by a 128-bit approximation of the power of five, which decides the rounding in nearly all cases (Eisel and
Lemire). A number with more digits is decided if the 19 digits and their successor round equally. All other numbers are
`HARD`: the caller converts their text with Python's `float`. This includes numbers beyond the range of doubles, which
become infinity.
"""

import numpy as np
from numba import njit

from strandline.kernels.bits import float_of_bits, leading_zeros
from strandline.kernels.machine import load_u8, load_u64, multiply_wide

U64 = np.uint64
BAD = -1  # As a position: there is no number.
OUT_OF_RANGE = -2  # As a position: the milliseconds do not fit into 64 bits.
EXACT, HARD = 0, 1

MAX_DIGITS = 19  # The largest number that always fits into a word.
MAX_EXPONENT = 100_000  # Larger ones do not change a double. Sums with this limit can't overflow.
SMALLEST_POWER, LARGEST_POWER = -342, 308  # Outside, every number of 19 digits is zero or infinite.
EXACT_POWERS = np.array([10.0**power for power in range(23)])
POWERS_OF_TEN = np.array([10**power for power in range(20)], dtype=np.uint64)
MANTISSA_LIMIT = U64(1 << 53)
MAX_MILLIS = U64((1 << 63) - 1)
# The NaN that Prometheus stores, except for staleness markers.
NORMAL_NAN = U64(0x7FF8_0000_0000_0001)
NAN_WORD, INF_WORD, INFINITY_WORD = (int.from_bytes(word, "big") for word in (b"nan", b"inf", b"infinity"))
PLUS, MINUS, DOT, ZERO = 0x2B, 0x2D, 0x2E, U64(0x30)

EIGHT_ZEROS, ABOVE_NINE, HIGH_NIBBLES = U64(0x3030303030303030), U64(0x0606060606060606), U64(0xF0F0F0F0F0F0F0F0)


def _fives():
    """The first 128 bits of 5**power for each power, as (high word, low word).

    They are truncated, so that a product with them is never too large. Only the reciprocals of small powers are rounded
    up: with these, a number may be exactly between two doubles, and its product must not be less than that.
    """
    words = np.empty((LARGEST_POWER - SMALLEST_POWER + 1, 2), dtype=np.uint64)
    for power in range(SMALLEST_POWER, LARGEST_POWER + 1):
        five = 5 ** abs(power)
        size = five.bit_length()
        if power >= 0:
            bits = five << (128 - size) if size <= 128 else five >> (size - 128)
        else:
            # Between 2**127 and 2**128, as five lies between 2**(size - 1) and 2**size.
            bits = (1 << (size + 127)) // five + (power >= -27)
        words[power - SMALLEST_POWER] = bits >> 64, bits & 0xFFFF_FFFF_FFFF_FFFF
    return words


FIVES = _fives()


@njit(cache=True)
def _long_mantissa(at, end):
    """The first 19 significant digits of digits with or without a dot: (digits, power of ten, whether any digit that
    was cut off is not zero).
    """
    mantissa, taken, power = U64(0), 0, 0
    fraction, dropped = False, False
    while at < end:
        byte = load_u8(at)
        at += 1
        if byte == DOT:
            fraction = True
            continue
        digit = U64(byte) - ZERO
        if taken < MAX_DIGITS:
            mantissa = mantissa * U64(10) + digit
            taken += mantissa != U64(0)
            power -= fraction
        else:
            dropped |= digit != U64(0)
            power += not fraction
    return mantissa, power, dropped


@njit(cache=True)
def _digits(at, end, mantissa):
    """Append digits to `mantissa`: (mantissa, position after them). With more than 19 digits, the result wraps."""
    while at + 8 <= end:
        word = load_u64(at)
        # All eight are digits if their high nibbles are 3, also after adding 6.
        if ((word & HIGH_NIBBLES) | (((word + ABOVE_NINE) & HIGH_NIBBLES) >> U64(4))) != U64(0x3333333333333333):
            break
        # Combine adjacent digits to numbers of two, four and eight digits.
        word -= EIGHT_ZEROS
        word = word * U64(10) + (word >> U64(8))
        pairs = (word & U64(0x000000FF000000FF)) * U64(0x000F424000000064)
        pairs += ((word >> U64(16)) & U64(0x000000FF000000FF)) * U64(0x0000271000000001)
        mantissa = mantissa * U64(100_000_000) + (pairs >> U64(32))
        at += 8
    while at < end:
        digit = U64(load_u8(at)) - ZERO
        if digit > U64(9):
            break
        mantissa = mantissa * U64(10) + digit
        at += 1
    return mantissa, at


@njit(cache=True)
def scan_decimal(at, end):
    """Parse `[+-]digits[.digits][e[+-]digits]`: (digits, power of ten, negative, whether digits were cut off, position
    after it). The position is `BAD` if there is no number.
    """
    negative = False
    if at < end and (load_u8(at) == MINUS or load_u8(at) == PLUS):
        negative = load_u8(at) == MINUS
        at += 1
    start = at
    mantissa, at = _digits(at, end, U64(0))
    count, power, dropped = at - start, 0, False
    if at < end and load_u8(at) == DOT:
        fraction = at + 1
        mantissa, at = _digits(fraction, end, mantissa)
        power = fraction - at
        count -= power
    if count == 0:
        return U64(0), 0, False, False, BAD
    if count > MAX_DIGITS:
        mantissa, power, dropped = _long_mantissa(start, at)
    if at < end and load_u8(at) | 0x20 == 0x65:
        at += 1
        below = False
        if at < end and (load_u8(at) == MINUS or load_u8(at) == PLUS):
            below = load_u8(at) == MINUS
            at += 1
        start, exponent = at, 0
        while at < end:
            digit = U64(load_u8(at)) - ZERO
            if digit > U64(9):
                break
            exponent = min(exponent * 10 + np.int64(digit), MAX_EXPONENT)
            at += 1
        if at == start:
            return U64(0), 0, False, False, BAD
        power += -exponent if below else exponent
    return mantissa, power, negative, dropped, at


@njit(cache=True)
def _nearest(mantissa, power):
    """The bits of the double nearest to mantissa * 10**power, and whether that is certain. The mantissa is not zero."""
    if power < SMALLEST_POWER or power > LARGEST_POWER:
        return U64(0), False
    shift = leading_zeros(mantissa)
    mantissa <<= U64(shift)
    low, high = multiply_wide(mantissa, FIVES[power - SMALLEST_POWER, 0])
    if high & U64(0x1FF) == U64(0x1FF):
        # Only in this case can the low half of the power affect the rounding.
        _, carry = multiply_wide(mantissa, FIVES[power - SMALLEST_POWER, 1])
        low += carry
        high += U64(low < carry)
        if low == U64(0xFFFF_FFFF_FFFF_FFFF) and not -27 <= power <= 55:
            return U64(0), False
    top = high >> U64(63)
    # 217706 / 65536 is the binary logarithm of ten, close enough for these powers.
    exponent = ((217_706 * power) >> 16) + 63 + np.int64(top) - shift + 1023
    if exponent <= 0 or exponent >= 2046:
        return U64(0), False
    below = top + U64(9)
    bits = high >> below
    if low <= U64(1) and -4 <= power <= 23 and bits & U64(3) == U64(1) and bits << below == high:
        # Exactly between two doubles: the even one.
        bits &= ~U64(1)
    bits = (bits + (bits & U64(1))) >> U64(1)
    # A mantissa that was rounded up to 2**53 carries into the exponent by itself.
    return bits + (U64(exponent - 1) << U64(52)), True


@njit(cache=True)
def to_float(mantissa, power, negative, dropped):
    """The double nearest to a scanned number, and `EXACT`; or `HARD` if it is undecided."""
    if mantissa == U64(0):
        value = 0.0
    elif not dropped and mantissa <= MANTISSA_LIMIT and -22 <= power <= 22:
        value = np.float64(mantissa)
        value = value / EXACT_POWERS[-power] if power < 0 else value * EXACT_POWERS[power]
    else:
        bits, certain = _nearest(mantissa, power)
        if certain and dropped:
            successor, certain = _nearest(mantissa + U64(1), power)
            certain = certain and successor == bits
        if not certain:
            return 0.0, HARD
        value = float_of_bits(bits)
    return -value if negative else value, EXACT


@njit(cache=True)
def read_special(at, end):
    """Parse NaN, Inf or Infinity, case-insensitively and with an optional sign: (value, position after it or `BAD`)."""
    negative = False
    if at < end and (load_u8(at) == MINUS or load_u8(at) == PLUS):
        negative = load_u8(at) == MINUS
        at += 1
    word, length = 0, 0
    while length < 8 and at + length < end:
        letter = np.int64(load_u8(at + length)) | 0x20
        if letter < 0x61 or letter > 0x7A:
            break
        word = (word << 8) | letter
        length += 1
    if word == NAN_WORD:
        return float_of_bits(NORMAL_NAN), at + length
    if word == INF_WORD or word == INFINITY_WORD:
        return -np.inf if negative else np.inf, at + length
    return 0.0, BAD


@njit(cache=True)
def read_float(at, end):
    """Parse a number, NaN or infinity: (value, position after it or `BAD`, `EXACT` or `HARD`)."""
    mantissa, power, negative, dropped, after = scan_decimal(at, end)
    if after < 0:
        value, after = read_special(at, end)
        return value, after, EXACT
    value, certainty = to_float(mantissa, power, negative, dropped)
    return value, after, certainty


@njit(cache=True)
def read_millis(at, end, shift):
    """Parse a time in units of 10**shift milliseconds: (milliseconds, position after it, `BAD` or `OUT_OF_RANGE`).

    The digits are not converted to a double. The result is truncated toward zero.
    """
    mantissa, power, negative, _dropped, after = scan_decimal(at, end)
    if after < 0:
        return 0, after
    power += shift
    if mantissa == U64(0) or power < -MAX_DIGITS:
        return 0, after
    if power < 0:
        mantissa //= POWERS_OF_TEN[-power]
    elif power > 0:
        if power > 18 or mantissa > MAX_MILLIS // POWERS_OF_TEN[power]:
            return 0, OUT_OF_RANGE
        mantissa *= POWERS_OF_TEN[power]
    if mantissa > MAX_MILLIS:
        return 0, OUT_OF_RANGE
    millis = np.int64(mantissa)
    return -millis if negative else millis, after
