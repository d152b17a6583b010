"""XXH3 with 128 bits and seed 0, as a numba kernel: the hash of part keys and metric names.

It implements the published algorithm, so any XXH3 library returns the same hashes. It is a kernel because keys are
hashed within a batch of messages, without a Python object or a call per key.
"""

import numpy as np
from numba import njit

from strandline.kernels.machine import load_u8, load_u32, load_u64, multiply_wide

U64 = np.uint64
P32_1, P32_2, P32_3 = U64(0x9E3779B1), U64(0x85EBCA77), U64(0xC2B2AE3D)
P64_1, P64_2, P64_3 = U64(0x9E3779B185EBCA87), U64(0xC2B2AE3D27D4EB4F), U64(0x165667B19E3779F9)
P64_4, P64_5 = U64(0x85EBCA77C2B2AE63), U64(0x27D4EB2F165667C5)
MIX_1, MIX_2 = U64(0x165667919E3779F9), U64(0x9FB21C651E98DF25)
LOW_HALF = U64(0xFFFF_FFFF)

# The default secret of the algorithm.
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)


def _secret_words(position, count=1):
    """Words of the secret from a byte position on. Called while this module is loaded, so kernels contain constants."""
    words = [U64(int.from_bytes(SECRET[at : at + 8], "little")) for at in range(position, position + 8 * count, 8)]
    return words[0] if count == 1 else tuple(words)


EMPTY_LOW, EMPTY_HIGH = _secret_words(64) ^ _secret_words(72), _secret_words(80) ^ _secret_words(88)
SHORT_LOW = (_secret_words(0) & LOW_HALF) ^ (_secret_words(4) & LOW_HALF)
SHORT_HIGH = (_secret_words(8) & LOW_HALF) ^ (_secret_words(12) & LOW_HALF)
TO_8 = _secret_words(16) ^ _secret_words(24)
TO_16_LOW, TO_16_HIGH = _secret_words(32) ^ _secret_words(40), _secret_words(48) ^ _secret_words(56)
# Four words for each step of 32 bytes: from byte 0, and for the second round from byte 3.
FIRST_ROUND = np.array([_secret_words(at, 4) for at in range(0, 128, 32)])
SECOND_ROUND = np.array([_secret_words(at, 4) for at in range(3, 99, 32)])
LAST_STEP = _secret_words(103, 4)
# Stripe n of a block uses eight words from word n on. The last stripe, the scrambling and the merges use other words.
STRIPE_WORDS = np.array(_secret_words(0, 24))
LAST_STRIPE, SCRAMBLE = _secret_words(121, 8), _secret_words(128, 8)
MERGE_LOW, MERGE_HIGH = _secret_words(11, 8), _secret_words(117, 8)

STRIPE = 64
STRIPES_PER_BLOCK = 16


@njit(cache=True)
def _swap_32(x):
    return ((x & U64(0xFF)) << U64(24)) | ((x & U64(0xFF00)) << U64(8)) | ((x >> U64(8)) & U64(0xFF00)) | (x >> U64(24))


@njit(cache=True)
def _swap_64(x):
    return (_swap_32(x & LOW_HALF) << U64(32)) | _swap_32(x >> U64(32))


@njit(cache=True)
def _avalanche(h):
    h ^= h >> U64(37)
    h *= MIX_1
    return h ^ (h >> U64(32))


@njit(cache=True)
def _avalanche_64(h):
    h ^= h >> U64(33)
    h *= P64_2
    h ^= h >> U64(29)
    h *= P64_3
    return h ^ (h >> U64(32))


@njit(cache=True)
def _fold(a, b):
    low, high = multiply_wide(a, b)
    return low ^ high


@njit(cache=True)
def _hash_to_16(at, length):
    size = U64(length)
    if length > 8:
        first, last = load_u64(at), load_u64(at + length - 8)
        low, high = multiply_wide(first ^ last ^ TO_16_LOW, P64_1)
        low += (size - U64(1)) << U64(54)
        last ^= TO_16_HIGH
        high += last + (last & LOW_HALF) * (P32_2 - U64(1))
        low ^= _swap_64(high)
        product_low, product_high = multiply_wide(low, P64_2)
        return _avalanche(product_low), _avalanche(product_high + high * P64_2)
    if length >= 4:
        word = U64(load_u32(at)) + (U64(load_u32(at + length - 4)) << U64(32))
        low, high = multiply_wide(word ^ TO_8, P64_1 + (size << U64(2)))
        high += low << U64(1)
        low ^= high >> U64(3)
        low ^= low >> U64(35)
        low *= MIX_2
        low ^= low >> U64(28)
        return low, _avalanche(high)
    if length > 0:
        low = (U64(load_u8(at)) << U64(16)) | (U64(load_u8(at + (length >> 1))) << U64(24))
        low |= U64(load_u8(at + length - 1)) | (size << U64(8))
        swapped = _swap_32(low)
        high = ((swapped << U64(13)) | (swapped >> U64(19))) & LOW_HALF
        return _avalanche_64(low ^ SHORT_LOW), _avalanche_64(high ^ SHORT_HIGH)
    return _avalanche_64(EMPTY_LOW), _avalanche_64(EMPTY_HIGH)


@njit(cache=True)
def _mix(low, high, one, two, s0, s1, s2, s3):
    """One step: 16 bytes at each of two addresses, with four words of the secret."""
    a0, a1, b0, b1 = load_u64(one), load_u64(one + 8), load_u64(two), load_u64(two + 8)
    low = (low + _fold(a0 ^ s0, a1 ^ s1)) ^ (b0 + b1)
    high = (high + _fold(b0 ^ s2, b1 ^ s3)) ^ (a0 + a1)
    return low, high


@njit(cache=True)
def _hash_to_240(start, length):
    low, high = U64(length) * P64_1, U64(0)
    end = start + length
    if length <= 128:
        for step in range((length - 1) // 32, -1, -1):
            s0, s1, s2, s3 = FIRST_ROUND[step, 0], FIRST_ROUND[step, 1], FIRST_ROUND[step, 2], FIRST_ROUND[step, 3]
            low, high = _mix(low, high, start + 16 * step, end - 16 * (step + 1), s0, s1, s2, s3)
    else:
        for step in range(4):
            s0, s1, s2, s3 = FIRST_ROUND[step, 0], FIRST_ROUND[step, 1], FIRST_ROUND[step, 2], FIRST_ROUND[step, 3]
            low, high = _mix(low, high, start + 32 * step, start + 32 * step + 16, s0, s1, s2, s3)
        low, high = _avalanche(low), _avalanche(high)
        for step in range(length // 32 - 4):
            s0, s1, s2, s3 = SECOND_ROUND[step, 0], SECOND_ROUND[step, 1], SECOND_ROUND[step, 2], SECOND_ROUND[step, 3]
            at = start + 128 + 32 * step
            low, high = _mix(low, high, at, at + 16, s0, s1, s2, s3)
        low, high = _mix(low, high, end - 16, end - 32, LAST_STEP[0], LAST_STEP[1], LAST_STEP[2], LAST_STEP[3])
    mixed = low * P64_1 + high * P64_4 + U64(length) * P64_2
    return _avalanche(low + high), U64(0) - _avalanche(mixed)


@njit(cache=True)
def _lane(word, secret):
    keyed = word ^ secret
    return (keyed & LOW_HALF) * (keyed >> U64(32))


@njit(cache=True)
def _accumulate(sums, at, s0, s1, s2, s3, s4, s5, s6, s7):
    """One stripe of 64 bytes into the eight sums."""
    a0, a1, a2, a3, a4, a5, a6, a7 = sums
    w0, w1, w2, w3 = load_u64(at), load_u64(at + 8), load_u64(at + 16), load_u64(at + 24)
    w4, w5, w6, w7 = load_u64(at + 32), load_u64(at + 40), load_u64(at + 48), load_u64(at + 56)
    return (
        a0 + w1 + _lane(w0, s0),
        a1 + w0 + _lane(w1, s1),
        a2 + w3 + _lane(w2, s2),
        a3 + w2 + _lane(w3, s3),
        a4 + w5 + _lane(w4, s4),
        a5 + w4 + _lane(w5, s5),
        a6 + w7 + _lane(w6, s6),
        a7 + w6 + _lane(w7, s7),
    )


@njit(cache=True)
def _scramble(x, secret):
    return (x ^ (x >> U64(47)) ^ secret) * P32_1


@njit(cache=True)
def _merge(sums, secret, begin):
    a0, a1, a2, a3, a4, a5, a6, a7 = sums
    result = begin
    result += _fold(a0 ^ secret[0], a1 ^ secret[1])
    result += _fold(a2 ^ secret[2], a3 ^ secret[3])
    result += _fold(a4 ^ secret[4], a5 ^ secret[5])
    result += _fold(a6 ^ secret[6], a7 ^ secret[7])
    return _avalanche(result)


@njit(cache=True)
def _hash_long(start, length):
    sums = (P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1)
    words, last = STRIPE_WORDS, LAST_STRIPE
    for stripe in range((length - 1) // STRIPE):
        w = stripe % STRIPES_PER_BLOCK
        sums = _accumulate(
            sums,
            start + stripe * STRIPE,
            words[w],
            words[w + 1],
            words[w + 2],
            words[w + 3],
            words[w + 4],
            words[w + 5],
            words[w + 6],
            words[w + 7],
        )
        if w == STRIPES_PER_BLOCK - 1:
            a0, a1, a2, a3, a4, a5, a6, a7 = sums
            sums = (
                _scramble(a0, SCRAMBLE[0]),
                _scramble(a1, SCRAMBLE[1]),
                _scramble(a2, SCRAMBLE[2]),
                _scramble(a3, SCRAMBLE[3]),
                _scramble(a4, SCRAMBLE[4]),
                _scramble(a5, SCRAMBLE[5]),
                _scramble(a6, SCRAMBLE[6]),
                _scramble(a7, SCRAMBLE[7]),
            )
    # The last stripe ends at the end of the data, and overlaps bytes that were already processed.
    at = start + length - STRIPE
    sums = _accumulate(sums, at, last[0], last[1], last[2], last[3], last[4], last[5], last[6], last[7])
    low = _merge(sums, MERGE_LOW, U64(length) * P64_1)
    high = _merge(sums, MERGE_HIGH, ~(U64(length) * P64_2))
    return low, high


@njit(cache=True)
def hash_at(address, length):
    """The hash of `length` bytes at an address, as (low word, high word)."""
    if length > 240:
        return _hash_long(address, length)
    if length > 16:
        return _hash_to_240(address, length)
    return _hash_to_16(address, length)


@njit(cache=True)
def hash_128(data, start, length):
    """The hash of `length` bytes of an array from `start` on, as (low word, high word)."""
    return hash_at(data.ctypes.data + start, length)
