"""A checkpoint's files: opened by anything, equal after a round trip, and never wrong unnoticed."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.engine.machine import Engine, Snapshot
from ripple.model.window import OnCount, Tumbling
from ripple.storage.checkpoint import (
    FORMAT,
    Checkpoint,
    CheckpointError,
    decode,
    decode_file,
    encode,
)
from ripple.storage.checkpoint.seal import MARK
from ripple.storage.fenced import DamagedError
from ripple.testing import Follower
from tests.engine.machine.shapes import IDS, SHAPES, feed
from tests.engine.machine.trades import Row, batch_of, rows, vwap_plan
from tests.examples import EXAMPLES
from tests.storage.checkpoint.corruption import (
    LENGTH_BYTES,
    sample,
    undetected_cuts,
    undetected_flips,
)
from tests.storage.checkpoint.kit import fed_engine

DATA = Path(__file__).parents[2] / "data"


def _encoded(engine: Engine) -> tuple[Checkpoint, dict[str, bytearray]]:
    return encode(engine.snapshot(), "0000000001-ab", 1, 0)


def _one_file(engine: Engine) -> bytes:
    (data,) = _encoded(engine)[1].values()
    return bytes(data)


@pytest.mark.parametrize(("assigner", "trigger"), SHAPES, ids=IDS)
@settings(max_examples=6 * EXAMPLES)
@given(events=rows, cut=st.integers(0, 60), failing=st.booleans())
def test_restored_partition_has_the_same_digest_and_future(
    *, assigner, trigger, events: list[Row], cut: int, failing: bool
) -> None:
    plan = vwap_plan(assigner, trigger, failing=failing)
    engine, follower = Engine(plan), Follower(plan)
    feed(engine, follower, events[:cut], 7)
    engine.stabilize()
    snapshot = engine.snapshot()
    read = decode(*_encoded(engine))
    assert read == snapshot
    restored = Engine.restore(plan, read)
    assert restored.digests == engine.digests
    other = Follower(plan)
    other.tables = {name: dict(table) for name, table in follower.tables.items()}
    feed(engine, follower, events, 5)
    feed(restored, other, events, 11)
    assert other.tables == follower.tables
    assert restored.digests == engine.digests


def test_file_opens_in_other_tools_as_a_table() -> None:
    data = _one_file(fed_engine(20, 100))
    table = pyarrow.ipc.open_file(pa.BufferReader(data)).read_all()
    assert table.num_rows == 20
    import duckdb
    import pandas as pd
    import polars as pl

    assert pl.read_ipc(io.BytesIO(data))["count.count"].sum() == 100
    connection = duckdb.connect()
    connection.register("checkpoint", table)
    assert connection.sql('select sum("count.count") from checkpoint').fetchall() == [(100,)]
    assert pd.read_feather(io.BytesIO(data))["symbol"].nunique() == 20


def test_equal_states_make_equal_files() -> None:
    assert _one_file(fed_engine(20, 100)) == _one_file(fed_engine(20, 100, batch=20))


def test_stored_sample_with_rows_that_cannot_be_computed_is_restored() -> None:
    about, tables = stored_sample("v3_failing")
    vwap, portfolio = tables.values()
    assert vwap.column("ripple.failed_step").to_pylist() == ["share", None, None]
    assert portfolio.column("ripple.members").to_pylist() == [1]
    plan = vwap_plan(Tumbling(50), OnCount(2), failing=True)
    engine = Engine.restore(plan, snapshot_of(about, tables))
    engine.check_invariants()
    found = engine.uncomputable["vwap"]
    assert (found.count, found.final) == (2, 1)
    assert [(row.key, row.step) for row in found.rows] == [(("IBM", 50), "share")]
    assert [(row["symbol"], row["count"]) for row in engine.table("rows").to_pylist()] == [
        ("AAPL", 4)
    ]


def stored_sample(kind: str) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """Return what the stored files of one checkpoint say, and their tables by node key."""
    paths = sorted(DATA.glob(f"checkpoint_{kind}-*.arrow"))
    read = [decode_file(path.read_bytes(), path.name) for path in paths]
    return read[0][0], {told["node_key"]: table for told, table in read}


def snapshot_of(about: dict[str, Any], tables: dict[str, pa.Table]) -> Snapshot:
    """Return the snapshot in a checkpoint's files, as the manifest would tell."""
    told = {name: about[name] for name in ("pipeline", "topology_hash", "partition", "cut")}
    told |= {name: about[name] for name in ("watermarks_ns", "counters", "digests")}
    return Snapshot(**told, tables=tables)


def test_newer_format_is_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = fed_engine(5, 9)
    with monkeypatch.context() as patch:
        patch.setattr("ripple.storage.checkpoint.format.FORMAT", FORMAT + 1)
        data = _one_file(engine)
    with pytest.raises(CheckpointError, match="upgrade"):
        decode_file(data, "x.arrow")


def test_format_that_no_release_wrote_is_refused_with_a_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = fed_engine(5, 9)
    with monkeypatch.context() as patch:
        patch.setattr("ripple.storage.checkpoint.format.FORMAT", 2)
        data = _one_file(engine)
    with pytest.raises(CheckpointError, match="format 2, which no release wrote: begin with"):
        decode_file(data, "x.arrow")


def test_key_that_looks_like_a_checksum_does_no_harm() -> None:
    nasty = (MARK + b"0" * 64).decode()
    engine = Engine(vwap_plan(total=False))
    engine.apply("trades", batch_of([(nasty, 1.0, 1, 1, "X"), (nasty + "b", 1.0, 1, 2, "X")]), 2)
    engine.stabilize()
    _, table = decode_file(_one_file(engine), "x.arrow")
    assert table.column("symbol").to_pylist() == [nasty, nasty + "b"]


def test_file_of_another_checkpoint_is_refused() -> None:
    checkpoint, files = _encoded(fed_engine(5, 9))
    (name,) = files
    others = {name: _one_file(fed_engine(5, 10))}
    with pytest.raises(DamagedError, match="replaced"):
        decode(checkpoint, others)


def test_every_bitflip_detected() -> None:
    """Of a sample, and every bit of both checksums; ``make corruption`` tries all."""
    data = sample()
    assert len(data) == LENGTH_BYTES
    decode_file(data, "sample.arrow")
    assert not list(undetected_flips(data, range(0, 8 * len(data), 331)))
    for at in (data.find(MARK), data.rfind(MARK)):
        assert not list(undetected_flips(data, range(8 * at, 8 * (at + len(MARK) + 64))))


def test_every_truncation_detected() -> None:
    data = sample()
    assert not list(undetected_cuts(data, range(0, len(data), 127)))
