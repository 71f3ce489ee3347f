"""``ripple checkpoint``: what it prints and how it ends."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import ripple as rp
from ripple.cli.checkpoint.tables import compare
from ripple.cli.main import main
from ripple.connectors.retries import retries_path
from ripple.engine.machine import Engine
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.store import DiskStore
from ripple.testing import Chance
from ripple.world import LiveDisk
from tests.storage.checkpoint.kit import fed_engine, feed
from tests.storage.log.trades import ManualClock


@rp.record(version=1)
class Trade:
    symbol: str
    t: rp.Timestamp


@pytest.fixture
def folder(tmp_path):
    """A folder with two checkpoints of one partition; the second has a key more."""

    async def write() -> None:
        checkpoints = Checkpoints(DiskStore(LiveDisk(tmp_path), Chance()), "test")
        owner = await checkpoints.claim(ManualClock(1_700_000_000_000_000_000), Chance(), epoch=42)
        engine = fed_engine(9, 9)
        await owner.write(engine.snapshot())
        feed(engine, 1000, 1)
        await owner.write(engine.snapshot())

    asyncio.run(write())
    return tmp_path


def _newest_file(folder):
    listed = asyncio.run(Checkpoints(DiskStore(LiveDisk(folder)), "test").list())
    return folder / listed[0].parts[0].object_name


def _run(*arguments) -> int:
    return main(["checkpoint", *map(str, arguments)])


def test_list_is_in_the_shape_of_the_book(folder, capfd) -> None:
    assert _run("list", "--dir", folder) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == f"Checkpoints for test/0 (dir={folder})"
    assert lines[1].startswith("  Latest: epoch=42 nodes=10 offsets=1 ")
    assert lines[2].startswith("          epoch=42 nodes=9 offsets=1 ")
    assert "written=2023-11-14T22:13:20Z" in lines[1]


def test_show_prints_cut_and_files(folder, capfd) -> None:
    assert _run("show", "--dir", folder) == 0
    out = capfd.readouterr().out
    assert "trades: next offset 10" in out
    assert str(_newest_file(folder)) in out


def test_verify_finds_a_flipped_bit(folder, capfd) -> None:
    assert _run("verify", "--dir", folder) == 0
    assert "2 checkpoints, all whole" in capfd.readouterr().out
    file = _newest_file(folder)
    assert _run("verify", file) == 0
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert _run("verify", "--dir", folder) == 1
    assert _run("verify", file) == 1
    assert capfd.readouterr().out.count("is damaged") == 2


def test_diff_counts_keys(folder, capfd) -> None:
    assert _run("diff", "--dir", folder) == 0
    out = capfd.readouterr().out
    assert "input trades: 9 to 10" in out
    assert "1 added (S" in out
    assert "0 removed, 0 changed" in out


def test_a_folder_without_any_is_named_and_where_a_cluster_has_them(tmp_path, capfd) -> None:
    assert _run("list", "--checkpoint-dir", tmp_path) == 1
    assert capfd.readouterr().err == f"ripple: there are no checkpoints in {tmp_path}\n"
    (tmp_path / "store").mkdir()
    assert _run("list", "--dir", tmp_path) == 1
    assert f"; a cluster's are in {tmp_path / 'store'}\n" in capfd.readouterr().err


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_export_can_be_read_elsewhere(folder, capfd, suffix: str) -> None:
    target = folder / f"state.{suffix}"
    assert _run("export", "--dir", folder, "--to", target) == 0
    read = pyarrow.csv.read_csv if suffix == "csv" else pyarrow.parquet.read_table
    assert read(target).column("count.count").to_pylist() == [1] * 10


def test_export_of_a_join_names_where_its_rows_are(tmp_path, capfd) -> None:
    trades = rp.Pipeline("p").source("trades", Trade)
    one, other = (
        trades.partition(f"by-{name}", key="symbol").fold(name, **{name: rp.count()})
        for name in ("one", "other")
    )
    plan = one.join("both", other, on="symbol").sink("out").plan()

    async def write() -> None:
        checkpoints = Checkpoints(DiskStore(LiveDisk(tmp_path), Chance()), "p")
        owner = await checkpoints.claim(ManualClock(1), Chance(), epoch=1)
        engine = Engine(plan)
        engine.stabilize()
        await owner.write(engine.snapshot())

    asyncio.run(write())
    for fold, code in (("both", 1), ("one", 0)):
        place = tmp_path / f"{fold}.csv"
        assert _run("export", "--dir", tmp_path, "--fold", fold, "--to", place) == code
        assert place.exists() is (code == 0)
    assert "--fold both: the rows of a join follow from" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "--dir", "/nonexistent"], "there is no folder"),
        (["list", "--pipeline", "other"], "there are no such checkpoints"),
        (["show", "--name", "nosuch"], "there is no checkpoint nosuch"),
        (["export", "--to", "x.doc"], "must end in"),
        (["export", "--to", "x.csv", "--fold", "nosuch"], "there are vwap"),
    ],
)
def test_wrong_arguments_are_explained(folder, capfd, arguments, said) -> None:
    if "--dir" not in arguments:
        arguments = [*arguments, "--dir", folder]
    assert _run(*arguments) == 1
    assert said in capfd.readouterr().err


@pytest.mark.parametrize("key", [{}, {"symbol": ["A", "B"]}, {"members": ["A", "B"]}])
def test_diff_knows_the_key_from_the_number_of_members(key: dict) -> None:
    rows = 2 if key else 1

    def table(count: int) -> pa.Table:
        return pa.table({**key, "ripple.members": [count] * rows, "n.count": [count] * rows})

    difference = compare(table(1), table(2))
    assert (difference.added, difference.removed) == ((), ())
    assert difference.changed == (("A", "B") if key else ("",))


def test_diff_takes_a_key_called_members_for_a_key() -> None:
    table = pa.table({"members": [1, 2], "n.count": [1, 1]})
    assert compare(table, table.slice(1)).removed == ("1",)


def test_unreadable_checkpoint_is_reported_and_the_rest_verified(folder, capfd) -> None:
    unreadable = folder / "test/00000/letters/0000000000000001.journal"
    unreadable.mkdir(parents=True)
    assert _run("verify", "--dir", folder) == 1
    assert f"{unreadable.name} cannot be read" in capfd.readouterr().out
    unreadable.rmdir()
    retried = folder / retries_path("test") / "topic"
    retried.parent.mkdir()
    retried.write_bytes(b"")
    assert _run("verify", "--dir", folder) == 1
    assert "retries.topic" in capfd.readouterr().out
