"""A user's modules, written into a folder, imported from there, and forgotten again."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

# Everything that ``step`` reads, each in one place that an edit can be made at.
FILES = {
    "steps.py": '''
"""Steps of a pipeline."""
import enum
import functools
import rates as r
import shop.taxes
from collections import deque, namedtuple
from dataclasses import dataclass, field, make_dataclass
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pyarrow as pa

LIMIT = 100
TABLE = {"a": 1.0, "b": [2.0, (3.0, None)]}
VENUES = {"X", "Y", "Z"}
WEIGHTS = np.array([1.0, 2.0, 3.0])
ARROW = pa.table({"at": pa.array([1, None], pa.timestamp("ns")), "size": [5, 6]})
FEE, PAUSE, RECENT = Decimal("0.1"), timedelta(seconds=1), deque([1, 2])
OPEN = SimpleNamespace(at=9)
BONUS = 5
Point = namedtuple("Point", "x y")
ORIGIN = Point(0, 1)


class Side(enum.Enum):
    BUY = 1
    SELL = -1

    def __init__(self, value):
        self._weight = 4 * value

    @property
    def opposite(self):
        return Side(-self.value)


TAKEN = {Side.BUY, Side.SELL}


class Plain:
    def __get__(self, instance, owner):
        return lambda: 13


class Base:
    factor = 2
    __rate__ = 21
    __match_args__ = ("factor", "rate")
    __len__ = Plain()

    def scale(self, by, x):
        return by * x

    fee = functools.partialmethod(scale, 22)

    @functools.cache
    def __call__(self, x):
        return x + 23

    def scaled(self, x):
        return x * self.factor


class Book(Base):
    __slots__ = ("depth",)

    def __init__(self, depth, note):
        self.depth, self.note = depth, note

    @staticmethod
    def floor(x):
        return x - 1

    @functools.cached_property
    def top(self):
        return self.depth + 10


BOOK = Book(3, "n")


@dataclass(frozen=True)
class Conf:
    share: float = field(default=0.5, metadata={"unit": "percent"})
    names: list = field(default_factory=lambda: ["p"])


CONF = Conf()
DOUBLED = {"doubled": lambda self: self.size * 2}
Loose = make_dataclass("Loose", [("size", int, 24)], namespace=DOUBLED)


class Caller:
    def __init__(self, power):
        self.power = power

    def __call__(self, x):
        return x**self.power

    def method(self, x):
        return x + self.power


def decorated(function):
    @functools.wraps(function)
    def inner(x):
        return function(x) + 1

    return inner


def helper(x, least=7):
    """Help."""
    return max(x, least) + deeper(x)


def deeper(x):
    return x + BONUS


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


@decorated
def wrapped(x):
    return x * 4


@functools.lru_cache
def cached(x):
    return x * 6


@functools.singledispatch
def kind_of(x):
    return 1


@kind_of.register
def _(x: int):
    return 2


def late(x):
    from latecomer import SURCHARGE

    return x + SURCHARGE


def made(c, call, bound, given):
    def count(n):
        return n and count(n - 1)

    def step(row):
        if row.size > LIMIT and row.venue in VENUES and Side.BUY in TAKEN:
            return [TABLE[k] for k in "ab" if k != TABLE] or (lambda: WEIGHTS[0])()
        try:
            total = helper(row.size) + even(3) + wrapped(1) + cached(2) + kind_of(3) + late(1)
        except KeyError:
            total = c.f
        total += BOOK.scaled(1) + CONF.share + len(Conf().names) + ORIGIN.x + OPEN.at
        total += len(ARROW) + len(RECENT)
        total += Loose().doubled()
        total += r.RATE + r.sub.NAME + shop.taxes.vat(1) + float(FEE) + PAUSE.seconds
        return total + call(1) + bound(1) + given(2) + count(2)

    return step


class Closed:
    def __init__(self, f):
        self.f = f


step = made(Closed(1.0), Caller(2), Caller(3).method, functools.partial(helper, least=8))
''',
    "rates.py": "import shop as sub\nRATE = 1.25\nUNUSED = 1\n",
    "shop/__init__.py": "NAME = 3\n",
    "shop/taxes.py": "from .numbers import SHARE\ndef vat(x): return x * SHARE\n",
    "shop/numbers.py": "SHARE = 0.2\nOTHER = 1\n",
    "latecomer.py": "import shop.numbers\nSURCHARGE = 9\nTHIRD = shop.numbers.SHARE\n",
}
NAMES = ("steps", "rates", "shop", "shop.taxes", "shop.numbers", "latecomer")


def written(folder: Path, files: Mapping[str, str] = FILES) -> Path:
    """Write the modules below ``folder``."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@contextmanager
def imported(folder: Path, name: str = "steps") -> Iterator[ModuleType]:
    """Import a module of ``folder``, and forget it and its neighbours afterwards.

    Modules of the same names, which other tests have imported, are put aside.
    """
    names = {path.stem for path in folder.iterdir()}
    aside = {one: sys.modules[one] for one in [*sys.modules] if one.split(".")[0] in names}
    for one in aside:
        del sys.modules[one]
    sys.path.insert(0, str(folder))
    before, writes = {*sys.modules}, sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(name)
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(str(folder))
        for module in {*sys.modules} - before:
            if Path(getattr(sys.modules[module], "__file__", None) or "/").is_relative_to(folder):
                del sys.modules[module]
        sys.modules.update(aside)


@dataclass
class Node:
    name: str
    below: list[Any] = field(default_factory=list)
    above: Any = None


def linked(length: int) -> Node:
    first = Node("first")
    last = first
    for at in range(length):
        last.below.append(Node(str(at), above=last))
        last = last.below[0]
    return first
