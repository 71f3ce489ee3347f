"""Tasks tell the driver how far they are; nobody else is listened to."""

from __future__ import annotations

import socket
import time

from ripple.spark.driver import Driver
from ripple.spark.progress import Listener, Reporter, TaskProgress


def test_progress_of_tasks_is_added_up() -> None:
    heard: list[TaskProgress] = []
    with Listener(Driver("127.0.0.1", "127.0.0.1"), 2, 300, heard.append) as listener:
        reporter = listener.reporter
        reporter.of(0).send(100, last=True)
        Reporter("127.0.0.1", reporter.port, "another").send(7, last=True)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
            way.sendto(b"\xff{", ("127.0.0.1", reporter.port))
        reporter.of(1).send(50, last=True)
        deadline_s = time.monotonic() + 20
        while len(heard) < 2 and time.monotonic() < deadline_s:
            time.sleep(0.01)
    assert [one.rows for one in heard] == [100, 150]
    assert heard[-1].fraction == 0.5


def test_a_line_says_what_is_known() -> None:
    known = TaskProgress(5_000_000, 20_000_000, 0.25, 100.0)
    assert known.text() == "5,000,000 rows  25%  50,000/s  5:00 left"
    assert TaskProgress(10, None, None, 2.0).text() == "10 rows  5/s"
    assert TaskProgress(1, 100, 0.01, 60.0).text() == "1 rows  1%  0/s  1:39:00 left"
