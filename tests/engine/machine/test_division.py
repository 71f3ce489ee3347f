"""A key in the wrong partition is refused, once, where the partitioner is known."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.core.errors import InputError
from ripple.core.hashing import partition_of
from ripple.engine.machine import Engine
from ripple.engine.operators.division import Division

PARTITIONS = 4
NAMES = tuple(f"trades/{number}" for number in range(PARTITIONS))
DIVISION = Division(("symbol",), {name: at for at, name in enumerate(NAMES)}, PARTITIONS)
SYMBOLS = [f"S{number}" for number in range(12)]
SCHEMA = pa.schema([("symbol", pa.string()), ("venue", pa.string()), ("t", pa.int64())])


@rp.record(version=1)
class Trade:
    symbol: str
    venue: str
    t: rp.Timestamp


def engine_of(
    key: Any = "symbol", *, before: Any = lambda line: line, window: bool = False
) -> Engine:
    line = before(rp.Pipeline("p").source("trades", Trade, time="t"))
    line = line.partition("by", key=key)
    if window:
        line = line.window("w", rp.Tumbling(10), lateness=0)
    engine = Engine(line.fold("f", n=rp.count()).sink("out").plan(), inputs=NAMES)
    engine.expect(DIVISION)
    return engine


def apply(engine: Engine, name: str, *symbols: str, t: int = 0) -> None:
    rows = [{"symbol": symbol, "venue": "X", "t": t} for symbol in symbols]
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    engine.apply(name, batch, engine.cut[name] + len(rows))


def home_of(symbol: str) -> str:
    return NAMES[partition_of(symbol.encode(), PARTITIONS)]


@pytest.mark.parametrize("window", [False, True])
@pytest.mark.parametrize("key", ["symbol", ("symbol", "venue"), ("venue", "symbol")])
def test_keys_where_they_belong_are_taken(key: Any, window: bool) -> None:
    engine = engine_of(key, window=window)
    for symbol in SYMBOLS * 2:
        apply(engine, home_of(symbol), symbol)
    assert engine.counters.applied == 2 * len(SYMBOLS)


@pytest.mark.parametrize("window", [False, True])
@pytest.mark.parametrize("key", ["symbol", ("symbol", "venue")])
def test_a_new_key_where_it_does_not_belong_is_refused_with_the_way_out(
    key: Any, window: bool
) -> None:
    engine = engine_of(key, window=window)
    wrong = next(name for name in NAMES if name != home_of("S0"))
    right = [symbol for symbol in SYMBOLS if home_of(symbol) == wrong]
    with pytest.raises(InputError) as refused:
        apply(engine, wrong, *right, "S0")
    said = str(refused.value)
    assert f"the symbol 'S0' is in {wrong}, which is partition {NAMES.index(wrong)}" in said
    assert f"has it in {NAMES.index(home_of('S0'))}" in said
    assert "murmur2" in said
    assert "via='log'" in said
    with pytest.raises(Exception, match="failed halfway"):
        engine.stabilize()


def test_a_new_key_where_it_does_not_belong_is_refused_in_each_branch() -> None:
    start = rp.Pipeline("p").source("trades", Trade, time="t")
    whole = start.sink("events")
    for name, only, key in (("f", "X", "symbol"), ("g", "Y", ("venue", "symbol"))):
        fold = start.filter(f"of-{name}", rp.col("venue") == only).partition(f"by-{name}", key=key)
        whole = whole.also(fold.fold(name, n=rp.count()).sink(f"{name}-out"))
    wrong = next(name for name in NAMES if name != home_of("S0"))
    for venue in "XY":
        engine = Engine(whole.plan(), inputs=NAMES)
        engine.expect(DIVISION)
        for name, symbol in ((home_of("S1"), "S1"), (wrong, "S0")):
            rows = [{"symbol": symbol, "venue": one, "t": 0} for one in ("Z", venue)]
            batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
            if symbol == "S1":
                engine.apply(name, batch, engine.cut[name] + 2)
                continue
            with pytest.raises(InputError, match=r"the symbol 'S0' is in .*murmur2_random\)$"):
                engine.apply(name, batch, engine.cut[name] + 2)


def test_keys_of_each_of_several_sources_are_checked_by_its_own_partitions() -> None:
    """A map in front of one source hides nothing of the other."""
    start = rp.Pipeline("p")
    trades = start.source("trades", Trade, time="t")
    more = start.source("more", Trade, time="t").map("same", lambda row: row, into=Trade)
    union = rp.union("both", trades, more).partition("by", key="symbol").fold("f", n=rp.count())
    own = ("more/0", "more/1")
    division = Division(("symbol",), {name: at for at, name in enumerate(own)}, len(own))
    engine = Engine(union.sink("out").plan(), inputs=(*NAMES, *own))
    engine.expect(DIVISION)
    engine.expect(division)
    for name in own:
        apply(engine, name, "S1")
    assert engine.counters.applied == 2
    wrong = next(name for name in NAMES if name != home_of("S0"))
    with pytest.raises(InputError, match=rf"the symbol 'S0' is in {wrong}, which .* 4 partitions"):
        apply(engine, wrong, "S0")


def test_key_freed_by_a_window_is_checked_again() -> None:
    engine = engine_of(window=True)
    apply(engine, home_of("S0"), "S0", t=1)
    for name in NAMES:
        engine.advance(name, 100, engine.cut[name])
    engine.stabilize()
    wrong = next(name for name in NAMES if name != home_of("S0"))
    with pytest.raises(InputError, match="S0"):
        apply(engine, wrong, "S0", t=200)


def test_unknown_partitioner_refuses_no_record() -> None:
    def renamed(line: Any) -> Any:
        return line.map("renamed", lambda row: row, into=Trade)

    for engine in (engine_of("venue"), engine_of(before=renamed)):
        for name in NAMES:
            apply(engine, name, *SYMBOLS)
