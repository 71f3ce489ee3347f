"""The log: one entry in three forms, without secrets, with limited repetition."""

from __future__ import annotations

import json
import logging

import pytest

from ripple.control.process_settings import LogSettings
from ripple.control.telemetry.levels import Level, level_of
from ripple.control.telemetry.log import Log
from ripple.control.telemetry.repeats import TIMES, WITHIN_S
from ripple.core import events
from ripple.core.sexp import loads

AT_NS = 1_709_000_000_123_456_789
SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "s3kr3t+/k",
    "RIPPLE_KAFKA_SASL_PASSWORD": "broker-pw",
    "RIPPLE_KAFKA_SASL_PASSWORD_FILE": "/etc/passwords/kafka",
    "AWS_ACCESS_KEY_ID": "who-it-is",
    "A_TOKEN": "on",
}


class Said:
    """A log that is read; ``at_s`` is its clock, from ``AT_NS``."""

    def __init__(self, form: str, level: str = "info", *, is_terminal: bool = False) -> None:
        self.lines: list[str] = []
        self.at_s = 0.0
        self.log = Log(
            LogSettings(form, level),
            self.lines.append,
            lambda: AT_NS + int(self.at_s * 1e9),
            environment=SECRETS,
            is_terminal=is_terminal,
            worker="w0",
            process="w0/1",
        )


FAILED = events.PartitionFailed(3, 9, ValueError("no"))
LOST = events.CoordinatorLost("c:9200", "it is gone")


def test_people_read_what_they_always_read() -> None:
    said = Said("auto", is_terminal=True)
    said.log.say("is told\nto stop")
    said.log.emit(FAILED, partition=3)
    said.log.emit(events.OutputTruncated("log:out", 7), partition=3)
    said.log.emit(LOST)
    head = "2024-02-27T02:13:20.123Z w0/1: "
    assert said.lines == [
        f"{head}is told to stop\n",
        f"{head}partition 3 has failed in epoch 9, and is tried again: no\n",
        f"{head}partition 3: log:out: cut off 7 bytes after the last commit\n",
        f"{head}coordinator c:9200 does not answer: it is gone\n",
    ]


def test_machines_read_a_line_of_json_each() -> None:
    said = Said("auto")
    said.log.emit(FAILED, partition=3)
    said.log.say("größer")
    assert [json.loads(line) for line in said.lines] == [
        {
            "time": "2024-02-27T02:13:20.123Z",
            "level": "error",
            "worker": "w0",
            "process": "w0/1",
            "component": "partition",
            "partition": 3,
            "message": "partition 3 has failed in epoch 9, and is tried again: no",
        },
        {
            "time": "2024-02-27T02:13:20.123Z",
            "level": "info",
            "worker": "w0",
            "process": "w0/1",
            "component": "process",
            "message": "größer",
        },
    ]


def test_the_books_form_is_an_s_expression() -> None:
    said = Said("sexp")
    said.log.emit(LOST)
    assert loads(said.lines[0].strip()) == [
        ["level", "Warn"],
        ["timestamp_ns", str(AT_NS)],
        ["worker_id", ["w0"]],
        ["component", "membership"],
        ["message", "coordinator c:9200 does not answer: it is gone"],
        ["context", [["process", "w0/1"]]],
    ]


def test_events_of_each_batch_are_logged_at_debug_alone() -> None:
    committed = events.Committed({"a": 7}, 3, 0.1, {})
    for level, lines in (("info", 0), ("debug", 1)):
        said = Said("json", level)
        said.log.emit(committed, partition=2)
        assert len(said.lines) == lines
    entry = json.loads(said.lines[0])
    assert (entry["level"], entry["message"], entry["cut"]) == ("debug", "committed", {"a": 7})


def test_less_than_the_level_is_not_said() -> None:
    said = Said("text", "error")
    said.log.say("a line")
    said.log.emit(LOST)
    said.log.emit(FAILED, partition=3)
    assert len(said.lines) == 1


@pytest.mark.parametrize("form", ["text", "json", "sexp"])
def test_no_secret_is_ever_said(form: str) -> None:
    said = Said(form)
    said.log.say("key s3kr3t+/k at https://user:pw@host/x", where="broker-pw")
    said.log.emit(events.CoordinatorLost("c", "broker-pw is wrong"))
    text = "".join(said.lines)
    for secret in ("s3kr3t", "pw@", "broker-pw"):
        assert secret not in text
    assert text.count("***") == 4
    said.log.say("who-it-is is on, its password in /etc/passwords/kafka")
    assert "***" not in said.lines[-1], "names, places and short words are no secrets"


def test_repeated_lines_are_counted() -> None:
    said = Said("text")
    for _ in range(TIMES + 20):
        said.log.emit(LOST)
    said.log.say("another one")
    assert len(said.lines) == TIMES + 1
    said.at_s += WITHIN_S
    said.log.emit(LOST)
    assert "said 20 times more within 10 s: coordinator c:9200" in said.lines[-2]
    assert said.lines[-1].endswith("it is gone\n")
    for _ in range(TIMES + 1):
        said.log.say("the end")
    said.log.close()
    assert "said once more within 10 s: the end" in said.lines[-1]


def test_the_same_of_other_partitions_is_not_a_repeat() -> None:
    said = Said("text")
    for partition in range(3 * TIMES):
        said.log.emit(events.OutputTruncated("log:out", 7), partition=partition)
    assert len(said.lines) == 3 * TIMES


def test_libraries_say_what_they_say_in_the_same_log() -> None:
    said, root = Said("json"), logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        said.log.take_over()
        logging.getLogger("aiokafka.conn").warning("broker %s is gone", "b")
        logging.getLogger("aiokafka.conn").info("all is well")
        try:
            raise ValueError("of broker-pw")
        except ValueError:
            logging.getLogger("asyncio").exception("a task has failed")
    finally:
        root.handlers[:], root.level = before, level
    entry, failed = map(json.loads, said.lines)
    assert (entry["level"], entry["component"]) == ("warn", "aiokafka.conn")
    assert entry["message"] == "broker b is gone"
    assert (failed["level"], failed["message"]) == ("error", "a task has failed")
    assert failed["exception"].splitlines()[-1] == "ValueError: of ***"


def test_harmless_event_is_not_an_error() -> None:
    assert level_of(LOST)[0] is Level.WARN
    assert level_of(FAILED)[0] is Level.ERROR
    assert level_of(events.Joined("w0", 1)) == (Level.INFO, "membership")
