"""Commands that are still running: rows as they come, signals, the progress line."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.processes import DEMO, RIPPLE, start
from tests.patience import PATIENCE_S

# Says each line again, and does nothing else: what an answer takes at least here and now.
ECHO = """
import sys
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""


def send(process: subprocess.Popen[bytes], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n".encode())


def next_row(process: subprocess.Popen[bytes]) -> str:
    """Return the next row of a command whose input stays open."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
    assert ready, "no row came"
    return process.stdout.readline().decode().rstrip()


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, "ripple-vwap-demo: interrupted"),
        (signal.SIGTERM, 143, "ripple-vwap-demo: ended by SIGTERM"),
    ],
)
def test_trickling_trades_give_rows_at_once_until_a_signal(tmp_path, number, code, said):
    letters = tmp_path / "bad.jsonl"
    with start(DEMO, "--stdin", "--dead-letter", letters) as process:
        send(process, "AAPL,150,100,1,X")
        assert next_row(process) == "AAPL,150.0000,100,1"
        send(process, "AAPL,151,100,2,X")
        assert next_row(process) == "AAPL,150.5000,200,2"
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == code
        assert process.stderr is not None
        assert process.stderr.read().decode().splitlines() == [said]
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]


def test_line_is_answered_as_soon_as_nothing_more_is_waiting():
    took_s, echo_s = [], []
    with start(DEMO, "--stdin") as process, start([sys.executable, "-c", ECHO]) as echo:
        for at in range(20):
            line = f"AAPL,150,100,{at},X"
            row = f"AAPL,150.0000,{100 * (at + 1)},{at + 1}"
            for asked, answer, each_s in ((process, row, took_s), (echo, line, echo_s)):
                time.sleep(0.01)
                began_s = time.perf_counter()
                send(asked, line)
                assert next_row(asked) == answer
                each_s.append(time.perf_counter() - began_s)
        process.kill()
        echo.kill()
    assert min(took_s) < 50 * min(echo_s), "it is some 7 times as long: nothing is waited for"


def test_interrupted_run_leaves_its_file_as_it_was(tmp_path):
    output = tmp_path / "vwap.csv"
    output.write_text("before\n")
    pipeline = ["run", "examples/portfolio.py", "--source", "-"]
    sinks = ["--sink", f"by-symbol={output}", "--sink", "total=-"]
    with start(RIPPLE, *pipeline, *sinks) as process:
        send(process, "AAPL,150,100,1,X")
        assert next_row(process) == "150.0,15000.0,1"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 143
    assert output.read_text() == "before\n"
    assert [path.name for path in tmp_path.iterdir()] == ["vwap.csv"]


def test_trickling_file_that_nobody_writes_yet_can_be_interrupted(tmp_path):
    fifo = tmp_path / "trades.csv"
    os.mkfifo(fifo)
    with start(DEMO, "--file", fifo) as process:
        writer = os.open(fifo, os.O_WRONLY)  # returns when the command has opened it
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
        os.close(writer)


def test_progress_is_drawn_on_a_terminal_and_gone_at_the_end():
    terminal, theirs = pty.openpty()
    seen = b""
    with start(DEMO, "--stdin", stderr=theirs) as process:
        os.close(theirs)
        deadline_s = time.monotonic() + PATIENCE_S
        while b"/s" not in seen and time.monotonic() < deadline_s:
            send(process, "AAPL,150,100,1,X")
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 4096)
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        process.communicate(timeout=PATIENCE_S)
        while not seen.endswith(b"Output records:    " + seen.rsplit(b" ", 1)[-1]):
            seen += os.read(terminal, 4096)
        assert process.returncode == 0
    os.close(terminal)
    line, _, rest = seen.partition(b"--- Ripple")
    assert b" events  " in line
    assert line.endswith(b"\r\x1b[K")
    assert b"\x1b" not in rest
