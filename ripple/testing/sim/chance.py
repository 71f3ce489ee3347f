"""Chance that is a function of a seed."""

from __future__ import annotations

import random
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    T = TypeVar("T")


class Chance:
    """A stream of draws named by ``labels``: a new stream never disturbs the others.

    Also the random port of a simulated world.
    """

    __slots__ = ("_bits",)

    def __init__(self, *labels: int | str) -> None:
        name = "/".join(map(str, labels)).encode()
        seed = int.from_bytes(blake2b(name, digest_size=8).digest(), "big")
        self._bits = random.Random(seed).getrandbits  # noqa: S311 - repeatable is the point

    def below(self, n: int) -> int:
        """Return an integer in ``[0, n)``."""
        # Of 64 bits the remainder is even enough, and the same in every version of Python.
        return self._bits(64) % n

    def bytes(self, n: int) -> bytes:
        """Return ``n`` bytes."""
        return self._bits(8 * n).to_bytes(n, "big") if n else b""

    def flip(self) -> bool:
        """Return True half of the time."""
        return bool(self._bits(1))

    def pick(self, options: Sequence[T]) -> T:
        """Return one of ``options``."""
        return options[self.below(len(options))]
