"""Durable runs over files: in the order in which they were taken, also after a restart."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ripple as rp
from ripple.cli.main import main as ripple
from ripple.connectors.files.folder import inputs
from ripple.connectors.files.folder.discovery import Discovery
from ripple.connectors.files.folder.listing import DataFile
from ripple.connectors.files.version import Version
from ripple.connectors.locate import open_inputs
from ripple.core.errors import InputError
from tests.patience import PATIENCE_S


@rp.record(version=1)
class Seen:
    who: str
    n: int


@rp.record(version=1)
class Daily:
    who: str
    n: int
    day: int


SEEN = rp.Pipeline("seen").source("seen", Seen).sink("rows")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(inputs, "LOOK_S", 0.01)
    Path("days").mkdir()
    return tmp_path


def put(name: str, *numbers: int) -> None:
    Path("new").write_text("".join(f"k,{n}\n" for n in numbers))
    Path("new").rename(f"days/{name}")


def written() -> list[int]:
    path = Path("out.jsonl")
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["n"] for line in lines]


def lose_checkpoints() -> None:
    for one in Path("state").rglob("manifest/*"):
        one.unlink()


def run(source: object = "days", **options: Any) -> rp.Report:
    return rp.run(SEEN, source=source, sink="out.jsonl", checkpoint_dir="state", **options)


class Following:
    """A run that follows; it ends once its output has the expected rows."""

    def __init__(self, source: str = "days", plan: rp.Pipeline = SEEN) -> None:
        self._task = rp.Task(
            plan,
            source=source,
            sink="out.jsonl",
            checkpoint_dir="state",
            follow=True,
            commit_interval="1ms",
        )

    def until(self, *steps: Callable[[], bool]) -> None:
        """Run until each step has come true in turn, then end in good order."""

        async def main() -> None:
            async with self._task as task:
                running = asyncio.create_task(task.run())
                async with asyncio.timeout(PATIENCE_S):
                    for step in steps:
                        while not step() and not running.done():
                            await asyncio.sleep(0.005)
                task.stop()
                await running

        asyncio.run(main())


def has(*numbers: int) -> Callable[[], bool]:
    return lambda: written() == [*numbers]


def then(name: str, *numbers: int) -> Callable[[], bool]:
    def step() -> bool:
        put(name, *numbers)
        return True

    return step


@pytest.mark.parametrize("batch_rows", [1, 3, 1000])
def test_a_run_resumes_in_the_order_it_recorded(place: Path, batch_rows: int) -> None:
    put("m.csv", 1, 2)
    put("p.csv", 3)
    run(batch_rows=batch_rows)
    put("a.csv", 4, 5)  # sorted before what was taken
    put("z.csv", 6)
    run(batch_rows=batch_rows)
    run("days/*.csv", batch_rows=batch_rows)
    assert written() == [1, 2, 3, 4, 5, 6]


def test_new_files_are_taken_as_they_come(place: Path) -> None:
    put("b.csv", 1, 2)
    steps = has(1, 2), then("c.csv", 3), has(1, 2, 3), then("a.csv", 4), has(1, 2, 3, 4)
    Following().until(*steps)
    put("0.csv", 5)
    Following().until(has(1, 2, 3, 4, 5))


def test_a_file_that_goes_while_a_look_finds_it_is_left_out(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("a.csv", 1)
    listed = inputs.files_now

    def found(where: str) -> list[DataFile]:
        return [*listed(where), DataFile("days/b.csv.tmp", ()), DataFile("days/c.csv", ())]

    monkeypatch.setattr(inputs, "files_now", found)
    Following().until(has(1), then("d.csv", 2), has(1, 2))


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("b.csv.gz", b"none", "b.csv.gz is not sound gzip data"),
        ("b.csv.gz", b"\x1f\x8b nonsense", "b.csv.gz is not sound gzip data"),
        ("b.csv.gz", gzip.compress(b"k,9\n", mtime=0)[:-4], "b.csv.gz is cut short"),
        ("b.parquet", b"none", "b.parquet as parquet: read files of one format"),
    ],
)
def test_a_file_that_is_no_data_may_be_removed(
    place: Path, name: str, data: bytes, why: str
) -> None:
    put("a.csv", 1)
    Path("days", name).write_bytes(data)
    put("c.csv", 2)
    with pytest.raises(InputError, match=why):
        run()
    assert written() == [1]
    Path("days", name).unlink()
    run()
    assert written() == [1, 2]


def test_the_last_file_may_be_removed_after_a_checkpoint(place: Path) -> None:
    put("a.csv", 1)
    put("b.csv", 2, 3)
    put("c.csv")
    run()
    for one in Path("days").iterdir():
        one.unlink()
    Following().until(has(1, 2, 3), then("d.csv", 4), has(1, 2, 3, 4))
    Following().until(has(1, 2, 3, 4), then("a.csv", 5), has(1, 2, 3, 4, 5))
    run()
    assert written() == [1, 2, 3, 4, 5]


def test_a_replay_without_checkpoints_reads_the_recorded_order(place: Path) -> None:
    put("b.csv", *range(10))
    Following().until(has(*range(10)), then("a.csv", 10, 11), has(*range(12)))
    lose_checkpoints()
    put("0.csv", 12)
    run()
    assert written() == [*range(13)]


def test_a_file_that_is_still_written_is_not_taken(place: Path) -> None:
    put("a.csv", 1)
    half = Path("days/b.csv.tmp")

    def begin() -> bool:
        half.write_text("k,2\n")
        return True

    def complete() -> bool:
        with half.open("a") as file:
            file.write("k,3\n")
        half.rename("days/b.csv")
        return True

    Following().until(has(1), begin, then("c.csv", 4), has(1, 4), complete, has(1, 4, 2, 3))


def test_a_file_that_grows_between_two_looks_is_taken_later() -> None:
    discovery = Discovery(is_whole=False)

    def taken(*sizes: tuple[str, int]) -> list[str]:
        discovery.see([DataFile(path, (), Version(size, "1")) for path, size in sizes], [])
        found = []
        while (file := discovery.next()) is not None:
            found.append(file.path)
        return found

    assert taken(("a", 1), ("b", 5)) == []
    assert taken(("a", 2), ("b", 5)) == ["b"]
    assert taken(("a", 2), ("c", 1)) == ["a"]


@pytest.mark.parametrize("follow", [False, True])
def test_a_file_that_changes_after_it_was_taken_is_named(place: Path, follow: bool) -> None:
    put("a.csv", 1, 2)
    put("b.csv", 3)
    run()
    with Path("days/a.csv").open("a") as file:
        file.write("k,9\n")
    with pytest.raises(InputError, match=r"days/a\.csv has changed since it was first read"):
        run(follow=follow)
    assert written() == [1, 2, 3]


def test_a_file_that_is_gone_is_missed_only_where_it_is_needed(place: Path) -> None:
    put("a.csv", 1, 2)
    put("b.csv", 3)
    run()
    Path("days/a.csv").unlink()
    put("c.csv", 4)
    run()
    assert written() == [1, 2, 3, 4]
    lose_checkpoints()
    with pytest.raises(InputError, match=r"cannot read days/a\.csv"):
        run()


def test_files_that_no_checkpoint_needs_are_forgotten_once_they_are_gone(place: Path) -> None:
    put("a.csv", 1)
    put("b.csv", 2)
    Following().until(has(1, 2))
    Path("days/a.csv").unlink()
    Following().until(has(1, 2), then("c.csv", 3), has(1, 2, 3))
    put("a.csv", 4)  # another one of the name
    Following().until(has(1, 2, 3, 4))
    lose_checkpoints()
    with pytest.raises(InputError, match="the files before record 1 were removed"):
        run()


def test_rejected_records_have_their_lines(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put("a.csv", 1)
    Path("days/b.csv").write_text("k,x\nk,2\n")
    run()
    assert written() == [1, 2]
    assert ripple(["dead-letter", "list", "--checkpoint-dir", "state"]) == 0
    assert "offset 1 (line 1 of days/b.csv)" in capsys.readouterr().out
    assert ripple(["dead-letter", "list", "--checkpoint-dir", "state", "--json"]) == 0
    letter = json.loads(capsys.readouterr().out)
    assert (letter["file"], letter["can_be_retried"]) == ("days/b.csv", False)


@pytest.mark.parametrize("name", ["a.csv", "b.csv"])
def test_a_file_that_cannot_be_read_at_all_may_be_mended(place: Path, name: str) -> None:
    for one in ("a.csv", "b.csv"):
        heading = "who,number" if one == name else "who,n"
        Path(f"days/{one}").write_text(f"{heading}\nk,1\n")
    with pytest.raises(InputError, match=f"the header of days/{name} has no column 'n'"):
        run("files:days?header")
    Path(f"days/{name}").write_text("n,who\n2,k\n")
    run("files:days?header")
    assert sorted(written()) == [1, 2]


def test_what_cannot_be_followed_is_said_at_once(place: Path) -> None:
    plan = SEEN.plan()
    with pytest.raises(InputError, match=r"there are no files at days"):
        run()
    with pytest.raises(InputError, match=r"web server does not tell which files are new"):
        run("https://127.0.0.1:1/a.csv", follow=True)
    put("a.csv", 1)
    with pytest.raises(InputError, match=r"cannot read days in a cluster or on Spark"):
        open_inputs("days", plan, 1, follow=True)
    run()
    next(Path("state").rglob("files/*")).rename(place / "elsewhere")
    with pytest.raises(InputError, match="the record of its files is gone"):
        run()


def test_two_folders_have_a_record_each(place: Path) -> None:
    Path("more/day=1").mkdir(parents=True)
    Path("more/day=1/a.csv").write_text("k,10\n")
    put("b.csv", 1)
    seen = rp.Pipeline("two").source("seen", Seen).partition("by-n", key="n")
    daily = rp.Pipeline("two").source("daily", Daily).partition("by-day", key="day")
    plan = (
        seen.fold("f", c=rp.count()).sink("rows").also(daily.fold("g", n=rp.sum("n")).sink("days"))
    )
    for n in (2, 3):
        rp.run(
            plan,
            source={"seen": "days", "daily": "more"},
            sink={"rows": "out.jsonl", "days": "days.jsonl"},
            checkpoint_dir="state",
        )
        put(f"{9 - n}.csv", n)
        Path(f"more/day={n}").mkdir()
        Path(f"more/day={n}/0.csv").write_text(f"k,{n}\n")
    assert written() == [1, 2]
    days = [json.loads(line) for line in Path("days.jsonl").read_text().splitlines()]
    assert [(row["day"], row["n"]) for row in days] == [(1, 10), (2, 2)]
    assert len({one.parent for one in Path("state").rglob("files/*/*")}) == 2
    recorded = b"".join(one.read_bytes() for one in sorted(Path("state").rglob("files/seen/*")))
    # Later versions read this.
    assert re.search(rb'\{"files":\[\[0,"days/b.csv",4,"\d+"\]\]\}', recorded)
