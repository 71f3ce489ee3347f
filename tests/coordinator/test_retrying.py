"""Retries of dead letters from the dashboard: by the command, each once, with a one-line result."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from coordinator.dashboard.letter_retry import ASKED_MAX, Retry, Retrying, retry
from ripple.cli.main import main
from ripple.client.dashboard.contract import AskedError
from ripple.storage.log import Topic
from ripple.world import LiveDisk
from tests.storage.log.trades import read_all
from tests.task.kept_letters import TRADES, write_letters

ONE: dict[str, Any] = {
    "pipeline": "vwap", "partition": 0, "input": "trades", "offset": "12", "reason": "mended",
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"partition": "0"}, "partition"),
        ({"partition": -1}, "partition"),
        ({"pipeline": None}, "needs pipeline"),
        ({"reason": " "}, "needs pipeline, input and reason"),
        ({"offset": 12}, "needs an offset, as text, or a cause"),
        ({"offset": "1e3"}, "needs an offset"),
        ({"offset": None}, "needs an offset"),
        ({"offset": None, "cause": ""}, "needs an offset"),
    ],
)
def test_invalid_retry_is_rejected(changed: dict[str, Any], problem: str) -> None:
    with pytest.raises(AskedError, match=problem):
        Retry.of(ONE | changed, "me")


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A folder of checkpoints with dead letters, beside two empty topics."""
    write_letters(LiveDisk(tmp_path / "store"), "vwap")
    for name in ("trades", "quotes"):
        assert main(["log", "create", "--schema", "trade", f"{tmp_path}/{name}"]) == 0
    return f"{tmp_path}/store"


async def test_a_letter_of_one_of_several_sources_goes_there(tmp_path: Path, store: str) -> None:
    source = f"quotes=log:{tmp_path}/quotes,trades=log:{tmp_path}/trades"
    asked = Retry.of(ONE, "me")
    said = await retry(asked, store=store, source=source)
    assert said["done"] == "vwap/0: 1 retried: mended (me)"
    read = [read_all(Topic.open(LiveDisk(tmp_path), name)) for name in ("trades", "quotes")]
    assert read == [TRADES[1:2], []]
    others = asked._replace(input="rates/3")
    with pytest.raises(AskedError, match="--retry-source"):
        await retry(others, store=store, source=source)


def test_texts_of_a_retry_never_become_flags() -> None:
    said = ONE | {"pipeline": "--source=log:/x", "offset": None, "cause": "--json"}
    assert all(one.startswith(("--p", "--input=", "--reason=")) for one in Retry.of(said, "").flags)


async def test_a_letter_is_retried_once(tmp_path: Path, store: str) -> None:
    place = {"store": store, "source": f"log:{tmp_path}/trades"}

    said = await retry(Retry.of(ONE, "me"), **place)
    assert said["done"] == "vwap/0: 1 retried: mended (me)"
    assert read_all(Topic.open(LiveDisk(tmp_path), "trades")) == TRADES[1:2]
    with pytest.raises(AskedError, match="cannot be retried: only its text was kept"):
        await retry(Retry.of(ONE | {"offset": "10"}, "me"), **place)
    with pytest.raises(AskedError, match="--retry-source"):
        await retry(Retry.of(ONE, "me"), store=store, source="")


async def test_retries_are_done_one_after_the_other_and_only_a_few_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[int] = []

    at_work, go_on = 0, asyncio.Event()

    async def counted(asked: Retry, *, store: str, source: str) -> dict[str, Any]:
        nonlocal at_work
        at_work += 1
        await go_on.wait()
        done.append(at_work)
        at_work -= 1
        return {"done": f"{asked.offset} {store} {source}"}

    monkeypatch.setattr("coordinator.dashboard.letter_retry.retry", counted)
    retrying = Retrying("st", "log:d/t")
    asked = [asyncio.create_task(retrying.do(Retry.of(ONE, "me"))) for _ in range(ASKED_MAX)]
    await asyncio.sleep(0)
    with pytest.raises(AskedError, match="4 retries are not done yet: retry once they are"):
        await retrying.do(Retry.of(ONE, "me"))
    go_on.set()
    assert await asyncio.gather(*asked) == [{"done": "12 st log:d/t"}] * ASKED_MAX
    await retrying.do(Retry.of(ONE, "me"))
    assert done == [1] * (ASKED_MAX + 1)
