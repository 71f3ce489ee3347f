"""Spans in OpenTelemetry's own collector: it takes what workers send, and has it whole."""

from __future__ import annotations

import asyncio
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.cluster import Job, cluster
from tests.cluster.settled import settled
from tests.cluster.test_traces import FILE, PARTITIONS, append, parent, trace
from tests.deploy import tools
from tests.patience import PATIENCE_S
from tests.services.missing import MissingError, skip
from tests.services.server import free_port

pytestmark = pytest.mark.services
CONFIG = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{debug: {{verbosity: detailed}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [debug]}}}}
"""
SPAN = re.compile(r"Span #\d+\n(.*?)(?=Span #|ScopeSpans #|ResourceSpans #|\Z)", re.DOTALL)
LINE = re.compile(r"^\s*(?:-> )?([\w. ]+?)\s*: (.*)$", re.MULTILINE)


class Collector:
    """A collector that runs, and what it has printed."""

    def __init__(self, port: int, printed: Path) -> None:
        self.url = f"http://127.0.0.1:{port}/v1/traces"
        self._printed = printed

    def spans(self) -> list[dict[str, str]]:
        """Return what it has said of each span; of the last one maybe not all yet."""
        return [dict(LINE.findall(one)) for one in SPAN.findall(self._printed.read_text())]

    def of(self, number: int) -> list[dict[str, str]]:
        """Return the spans of a trace, by stage."""
        found = [
            one
            for one in self.spans()
            if one.get("Trace ID") == trace(number) and "ripple.partition" in one
        ]
        return sorted(found, key=lambda one: one["ripple.stage"])

    def wait(self) -> None:
        """Wait until each trace has two spans."""
        until_s = time.monotonic() + PATIENCE_S
        while any(len(self.of(number)) < 2 for number in range(PARTITIONS)):
            assert time.monotonic() < until_s, self._printed.read_text()
            time.sleep(0.1)


@contextmanager
def collecting(folder: Path) -> Iterator[Collector]:
    """Run the collector on a free port."""
    try:
        program = tools.otelcol()
    except MissingError as error:
        skip(error)
    port, config, printed = free_port(), folder / "otelcol.yaml", folder / "otelcol.log"
    config.write_text(CONFIG.format(port=port))
    with printed.open("w") as out:
        running = subprocess.Popen([program, "--config", config], stdout=out, stderr=out)
    try:
        until_s = time.monotonic() + PATIENCE_S
        while "Everything is ready" not in printed.read_text():
            assert running.poll() is None, printed.read_text()
            assert time.monotonic() < until_s, printed.read_text()
            time.sleep(0.05)
        yield Collector(port, printed)
    finally:
        running.terminate()
        assert running.wait(PATIENCE_S) == 0, printed.read_text()


def test_a_collector_has_the_spans_of_two_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(FILE, tmp_path / "trades", tmp_path / "made", ("out", "by-class"), PARTITIONS)
    append(tmp_path, sampled=False)

    async def live() -> None:
        async with cluster(job, tmp_path / "state", workers=2) as up:
            await settled(up.coordinators, 2)
            await up.caught_up(PATIENCE_S)
            append(tmp_path, sampled=True)
            await up.caught_up(PATIENCE_S)
            await asyncio.to_thread(collector.wait)

    with collecting(tmp_path) as collector:
        monkeypatch.setenv("RIPPLE_TRACE_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        asyncio.run(live())
    for number in range(PARTITIONS):
        first, second = collector.of(number)
        assert (first["Name"], first["Parent ID"]) == ("stabilize", parent(number))
        assert (second["Name"], second["Parent ID"]) == ("stabilize", first["ID"])
        assert first["ripple.partition"] == f"Int({number})"
