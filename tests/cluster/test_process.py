"""Processes of ``ripple cluster up``: which of them are started again."""

from __future__ import annotations

import asyncio
import gc
import socket
from pathlib import Path
from typing import Any

import pytest

from ripple.cli.cluster.starting import process as module
from ripple.cli.cluster.starting.plan import Planned, taken_port
from ripple.cli.cluster.starting.process import (
    REFUSALS_MAX,
    PortTakenError,
    Process,
    WillNotStartError,
)
from ripple.cli.cluster.up import _Cluster
from ripple.cli.lib.exits import EXIT_SCHEMA
from ripple.control.process import standard_error
from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_MIN_S", 0.01)
    monkeypatch.setattr(module, "PAUSE_MAX_S", 0.02)


def planned(folder: Path, *lives: str) -> Planned:
    """Return a process that does one thing after the other, a life each; the last one for ever."""
    count = folder / "count"
    count.write_text("")
    begun = f"echo >> {count}; case $(wc -l < {count}) in "
    cases = "".join(f"{number}) {life};; " for number, life in enumerate(lives[:-1], 1))
    return Planned("worker-1", ("sh", "-c", f"{begun}{cases}*) {lives[-1]};; esac"), True)


async def lived(process: Process) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await process.live()


async def test_process_that_always_refuses_is_given_up(tmp_path: Path) -> None:
    process = Process(planned(tmp_path, "exit 1"), lambda *_: None)
    with pytest.raises(WillNotStartError, match="worker-1 does not start"):
        await lived(process)
    assert process.starts == REFUSALS_MAX


async def test_process_whose_schema_does_not_fit_is_given_up_at_once(tmp_path: Path) -> None:
    process = Process(planned(tmp_path, f"exit {EXIT_SCHEMA}"), lambda *_: None)
    with pytest.raises(WillNotStartError, match="worker-1 does not start"):
        await lived(process)
    assert process.starts == 1


async def test_process_that_has_worked_is_restarted_until_it_works(tmp_path: Path) -> None:
    said: list[str] = []
    away = ["exit 1"] * (REFUSALS_MAX + 2)

    def say(_: str, line: str) -> None:
        said.append(line)
        if line == "back":
            process.end()

    process = Process(planned(tmp_path, "kill -9 $$", *away, "echo back >&2; exec sleep 60"), say)
    await lived(process)
    assert process.starts == len(away) + 2
    assert any("was killed by SIGKILL" in line for line in said)


async def test_repeated_deaths_have_short_pauses_after_a_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE_MAX_S", 60.0)

    async def pauses(deaths: int) -> list[str]:
        said: list[str] = []

        def say(_: str, line: str) -> None:
            said.extend(line.partition("restarting in ")[2].split()[:1])
            if len(said) == deaths:
                process.end()

        process = Process(planned(tmp_path, "kill -9 $$"), say)
        await lived(process)
        return said

    assert await pauses(4) == ["0.01", "0.02", "0.04", "0.08"]
    monkeypatch.setattr(module, "STEADY_S", 0.0)
    assert await pauses(4) == ["0.01"] * 4


async def test_processes_that_do_not_start_are_named_without_a_traceback(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    forgotten: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: forgotten.append(about))
    refused = [Process(planned(tmp_path, "exit 1"), lambda *_: None) for _ in range(2)]
    lives = [asyncio.ensure_future(lived(process)) for process in refused]
    await asyncio.wait(lives)
    assert _Cluster(refused)._code(None, lives) == 1  # type: ignore[arg-type]
    assert standard_error.flush()
    lives.clear()
    gc.collect()
    assert capfd.readouterr().err.count("worker-1 does not start") == 2
    assert not forgotten


async def test_process_with_a_taken_port_is_given_up_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        command = (*planned(tmp_path, "exit 1").command, f"--health-port={port}")
        one = Planned("worker-1", command, is_worker=True)
        process = Process(one, lambda *_: None, has_free_ports=True)
        with pytest.raises(PortTakenError, match=f"worker-1: port {port} was taken meanwhile"):
            await process.live()
    assert process.starts == 1
    assert taken_port(one) is None
