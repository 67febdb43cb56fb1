"""Samples of live records by keyed coins: who is drawn in a round, and nothing else.

Promise: a sample is a function of key and live records, whatever their order; with uniform coins it
has exactly the law of its design. What comes out are values in the order of their canonical bytes:
neither identities nor ranks get any further.

A coin belongs to (release, round, record), where a record is (namespace, id, stamp) or, in a stream
without ids, (stamp, values, number of the copy). Release and round are in the key. Copies are
numbered from 1, so that a deletion takes the coin that came last and never looks at ranks, which
persistent ranks need (KKMNS appendix C, note 13).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from heapq import nsmallest
from typing import NamedTuple

import msgspec

from retrodp.mechanisms.oneshot.contract import Values

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

COIN_BITS = 256


class _Copy(NamedTuple):
    """One live record or copy.

    Attributes:
        coin: Uniform on 0..2^256-1.
        name: Decides between equal coins, which no one will see.
        values: Canonical bytes of the values.
    """

    coin: int
    name: bytes
    values: bytes


def poisson(live: Mapping[bytes, int], key: bytes, rate: Fraction) -> list[Values]:
    """Every live record independently with probability `rate`."""
    return _shown(
        own
        for own in _copies(live, key)
        if _below(own.coin, rate) or (_undecided(own.coin, rate) and _later(own, key, rate))
    )


def smallest(live: Mapping[bytes, int], key: bytes, size: int) -> list[Values]:
    """The `size` live records of smallest rank, all if there are fewer: uniform, without repetition.

    The key decides whether ranks last a round (a fresh key) or a life (a lasting one).
    """
    return _shown(iter(nsmallest(size, _copies(live, key))))


def _copies(live: Mapping[bytes, int], key: bytes) -> Iterator[_Copy]:
    for label, copies in live.items():
        *who, values = _decode(label)
        value_bytes = _encode(values)
        if len(who) > 1:
            name = _encode(who)
            yield _Copy(_coin(name, key), name, value_bytes)
        else:
            for copy in range(1, copies + 1):
                name = _encode([*who, values, copy])
                yield _Copy(_coin(name, key), name, value_bytes)


def _coin(name: bytes, key: bytes) -> int:
    return int.from_bytes(
        hashlib.blake2b(
            name, key=key, digest_size=COIN_BITS // 8, person=b"retrodp sample"
        ).digest(),
        "big",
    )


def _below(coin: int, rate: Fraction) -> bool:
    """Whether every number that begins with these bits lies below the rate."""
    return (coin + 1) * rate.denominator <= rate.numerator << COIN_BITS


def _undecided(coin: int, rate: Fraction) -> bool:
    return coin * rate.denominator < rate.numerator << COIN_BITS


def _later(own: _Copy, key: bytes, rate: Fraction) -> bool:
    """Decide by further bits what the first did not: about once in 2^256 coins."""
    rest = (rate.numerator << COIN_BITS) - own.coin * rate.denominator
    coin = _coin(own.name + b"again", key)
    return coin * rate.denominator < rest << COIN_BITS


def _shown(chosen: Iterator[_Copy]) -> list[Values]:
    ordered = sorted(own.values for own in chosen)
    return [tuple(_decode(values)) for values in ordered]
