"""A collector of traces, by OTLP over HTTP, as small as it can be."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.patience import PATIENCE_S


@dataclass(frozen=True, slots=True)
class Seen:
    """A span, and the process that has sent it."""

    process: str
    trace: str
    id: str
    parent: str
    name: str
    about: dict[str, Any]

    @property
    def stage(self) -> int:
        return self.about["ripple.stage"]


@dataclass
class Collector:
    """What has come by now."""

    url: str = ""
    spans: list[Seen] = field(default_factory=list)

    def of(self, trace: str) -> list[Seen]:
        """Return the spans of a trace, by stage."""
        found = [one for one in self.spans if one.trace == trace]
        return sorted(found, key=lambda one: one.stage)

    def wait(self, traces: list[str], spans: int) -> None:
        """Wait until each of the traces has so many spans."""
        until_s = time.monotonic() + PATIENCE_S
        while any(len(self.of(trace)) < spans for trace in traces):
            assert time.monotonic() < until_s, self.spans
            time.sleep(0.05)

    def take(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            process = _values(resource.resource.attributes)["service.instance.id"]
            for scope in resource.scope_spans:
                self.spans += [
                    Seen(
                        *(process, one.trace_id.hex(), one.span_id.hex()),
                        *(one.parent_span_id.hex(), one.name, _values(one.attributes)),
                    )
                    for one in scope.spans
                ]


def _values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """Take spans on a port of this machine."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
