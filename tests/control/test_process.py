"""Start, output and end of a process."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from threading import Thread

import pytest

from ripple.control import daemon, process
from ripple.control.process import Lines
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


def ended(
    script: str, closed: tuple[int, ...] = (), limit: int | None = None
) -> subprocess.CompletedProcess[str]:
    def before() -> None:
        if limit is not None:
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        for number in closed:
            os.close(number)

    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        preexec_fn=before,  # what a shell does with <&-
        check=False,
    )


def test_closed_streams_are_held_here_and_in_what_is_started_from_here():
    script = """
import os, subprocess, sys
from ripple.control import process
process.begin()
pair = os.pipe()
see = "import os; print(*(os.readlink(f'/proc/self/fd/{n}') for n in (0, 2)))"
subprocess.run([sys.executable, "-c", see], check=True)
print(min(pair) > 2)
"""
    assert ended(script, closed=(0, 2)).stdout == "/dev/null /dev/null\nTrue\n"


def test_limit_of_files_is_raised_as_far_as_the_system_permits():
    script = """
import resource
from ripple.control import process
process.begin()
print(*resource.getrlimit(resource.RLIMIT_NOFILE), process.files()[1])
"""
    soft, hard, left_out = ended(script, limit=64).stdout.split()
    assert soft == hard == left_out


@pytest.mark.parametrize(
    "module", ["coordinator.__main__", "ripple.client.flight.__main__", "worker.__main__"]
)
def test_daemons_begin_as_commands_do(module: str, monkeypatch: pytest.MonkeyPatch):
    begun: list[bool] = []
    monkeypatch.setattr(process, "begin", lambda: begun.append(True))
    assert import_module(module).main(["--no-such-flag"]) == 1
    assert begun == [True]


def test_unread_output_blocks_nothing_and_reports_omitted_lines():
    reading, writing = os.pipe()
    lines = Lines(writing, bytes_max=1 << 18)
    for number in range(4096):
        lines.write(f"{number:0127}\n")  # twice of what fits into the pipe and what waits
    assert not lines.flush(within_s=0)
    found: list[bytes] = []
    reader = Thread(target=lambda: found.append(Path(f"/proc/self/fd/{reading}").read_bytes()))
    reader.start()
    assert lines.flush(PATIENCE_S)
    lines.write("again\n")
    assert lines.flush(PATIENCE_S)
    os.close(writing)
    reader.join(PATIENCE_S)
    kept = found[0].splitlines()
    assert kept[0] == b"0" * 127
    assert kept[-1] == b"again"
    left_out = [int(line.split()[-2]) for line in kept if line.startswith(b"(left out")]
    assert sum(left_out) == 4096 - (len(kept) - 1 - len(left_out)) > 0
    os.close(reading)


def test_all_lines_to_a_file_are_written_however_long_the_disk_takes(tmp_path: Path):
    """Of a file, that has no reader to give up: the last line of a process is there."""
    with (tmp_path / "said").open("wb") as file:
        lines = Lines(file.fileno())
        for number in range(9_000):
            lines.write(f"line {number}\n")
        assert lines.flush(within_s=0)
    assert (tmp_path / "said").read_text().splitlines()[-1] == "line 8999"


def test_threads_that_user_code_leaves_behind_hold_up_no_end():
    script = """
import atexit, threading
from ripple.control.process import leave
threading.Thread(target=threading.Event().wait).start()
atexit.register(print, "at exit")
print("done")
leave(3)
"""
    found = ended(script)
    assert (found.returncode, found.stdout) == (3, "done\nat exit\n")


def test_hang_up_does_not_end_who_is_to_outlast_his_terminal():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert daemon._is_of_nohup(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert not daemon._is_of_nohup(signal.SIGTERM)


def test_signal_that_comes_after_the_work_is_done_changes_no_exit_code():
    script = """
import os, signal
from types import SimpleNamespace
from ripple.control.daemon import Daemon

async def work(ending):
    os.kill(os.getpid(), signal.SIGTERM)
    await ending.wait()

settings = SimpleNamespace(end_with_stdin=False, origins={}, text="")
code = Daemon("ripple-test", (), lambda *_: settings, lambda _: work).main([])
for number in (signal.SIGTERM, signal.SIGHUP):
    os.kill(os.getpid(), number)
print(code)
"""
    found = ended(script)
    assert (found.returncode, found.stdout) == (0, "0\n")
