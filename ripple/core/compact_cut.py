"""Cuts as records hold them: a mapping of a few inputs as it is, one of many paths as a short text.

A later stage's cut has an entry for each path of its events, named by the partitions on the path
(``3/0/trades/1``), so that their number is the product of the stages' partitions; and nearly all
its information is the offsets of the source. The text is ``2:`` and base 85 of a deflated run of
varints: how many partitions each stage has that all paths go through alike, then the names of the
inputs behind those, then the newest offset of each source, then how far behind it each path is.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import product
from math import prod
from typing import TypeAlias

from ripple.core.cut import Cut, source_of

Stored: TypeAlias = Mapping[str, int] | str

ENTRIES_AS_THEY_ARE = 16
PATHS_MAX = 1 << 20
BYTES_MAX = 64 << 20  # inflated
NAMES_CHARS_MAX = 256 << 20  # of all paths

_FORM = "2:"
_FIRST = re.compile(r"(0|[1-9]\d*)/(.+)", re.DOTALL)


def stored(cut: Cut) -> Stored:
    """Return the form of ``cut`` for a record, as JSON can hold it."""
    if not ENTRIES_AS_THEY_ARE < len(cut) <= PATHS_MAX:
        return dict(cut)
    head, sources = _names(tuple(cut))
    if not head:
        return dict(cut)
    newest = dict.fromkeys(sources, 0)
    for source, offset in zip(sources, cut.values(), strict=True):
        newest[source] = max(newest[source], offset)
    run = bytearray(head)
    _put(run, newest.values())
    offsets = zip(sources, cut.values(), strict=True)
    _put(run, [newest[source] - offset for source, offset in offsets])
    if len(run) > BYTES_MAX:
        return dict(cut)
    return _FORM + base64.b85encode(zlib.compress(run, 9)).decode()


def loaded(held: object) -> dict[str, int]:
    """Return the cut that a record holds, of this form or the one before.

    Raises ValueError for other text.
    """
    if isinstance(held, Mapping):
        return dict(held)
    if not isinstance(held, str) or not held.startswith(_FORM):
        raise ValueError(f"no cut that this version of Ripple reads begins with {str(held)[:20]!r}")
    try:
        return _read(_inflated(base64.b85decode(held[len(_FORM) :])))
    except (ValueError, zlib.error, IndexError) as error:
        raise ValueError(f"a cut in its short form cannot be read: {error}") from error


@lru_cache(maxsize=16)  # they are those of each commit of a partition
def _names(names: tuple[str, ...]) -> tuple[bytes, tuple[str, ...]]:
    """Return the names as they are written, b"" if they are too long, and the source of each."""
    counts, tails = _factored([*names])
    run = bytearray()
    if _chars(counts, tails) > NAMES_CHARS_MAX:
        return b"", ()
    _put(run, (len(counts), *counts, len(tails)))
    for tail in tails:
        text = tail.encode(errors="surrogatepass")
        _put(run, (len(text),))
        run += text
    return bytes(run), tuple(map(source_of, names))


def _factored(names: list[str]) -> tuple[list[int], list[str]]:
    """Return the stages that all paths go through alike, and the rest of their names.

    The product of both, in order, is ``names``.
    """
    counts: list[int] = []
    while True:
        parts = [_FIRST.fullmatch(name) for name in names]
        firsts = [part[1] for part in parts if part is not None]
        rests = [part[2] for part in parts if part is not None]
        count = len(set(firsts))
        size = len(names) // count if count else 0
        numbers = [str(number) for number in range(count) for _ in range(size)]
        if len(rests) < len(names) or firsts != numbers or rests != rests[:size] * count:
            return counts, names
        counts.append(count)
        names = rests[:size]


def _chars(counts: list[int], tails: list[str]) -> int:
    """Return how many characters the names have, or a few more."""
    stages = len(tails) * sum(len(str(count)) + 1 for count in counts)
    return prod(counts) * (sum(map(len, tails)) + stages)


def _read(data: bytes) -> dict[str, int]:
    run = _Run(data)
    counts = [run.number() for _ in range(_limited(run.number()))]
    tails = [run.text() for _ in range(_limited(run.number()))]
    paths = len(tails)
    for count in counts:
        paths = _limited(paths * count)
    if not paths:
        raise ValueError("it contradicts itself")
    if _chars(counts, tails) > NAMES_CHARS_MAX:
        raise ValueError(f"its names are of more than {NAMES_CHARS_MAX} characters")
    ways = product(*(map(str, range(count)) for count in counts))
    names = ["/".join((*way, tail)) for way in ways for tail in tails]
    newest = {source: run.number() for source in dict.fromkeys(map(source_of, names))}
    cut = {name: newest[source_of(name)] - run.number() for name in names}
    if len(cut) < paths or min(cut.values(), default=0) < 0 or run.at < len(data):
        raise ValueError("it contradicts itself")
    return cut


class _Run:
    """Varints and texts one after the other; IndexError at its end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self) -> int:
        number = shift = 0
        while shift < 64:
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
        raise ValueError("it holds a number of more than 64 bits")

    def text(self) -> str:
        length = self.number()
        text = self.data[self.at : self.at + length]
        self.at += length
        return text.decode(errors="surrogatepass")


def _inflated(data: bytes) -> bytes:
    inflate = zlib.decompressobj()
    run = inflate.decompress(data, BYTES_MAX)
    if not inflate.eof:
        raise ValueError(f"it is cut short, or takes more than {BYTES_MAX} bytes")
    return run


def _limited(count: int) -> int:
    if count > PATHS_MAX:
        raise ValueError(f"it is of {count} paths, more than {PATHS_MAX}")
    return count


def _put(run: bytearray, numbers: Iterable[int]) -> None:
    for number in numbers:
        left = number
        while left > 0x7F:
            run.append(left & 0x7F | 0x80)
            left >>= 7
        run.append(left)
