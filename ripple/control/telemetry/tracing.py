"""Spans over OpenTelemetry, sent by OTLP over HTTP. The only place that imports opentelemetry.

Spans wait in a queue of OpenTelemetry's, in its own thread; spans beyond its bound, and failed
exports, are lost, and no batch waits for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.control.telemetry.sampler import Sampler
from ripple.core.extras import needed
from ripple.core.tracing import CONTEXTS_MAX, FIELD

with needed("tracing", "a trace"):
    import requests
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opentelemetry.context import Context

    from ripple.control.telemetry.sampler import SamplerLimits

SERVICE = "ripple-worker"
NAME = "stabilize"
FLUSH_MS = 2000
_W3C = TraceContextTextMapPropagator()


class Tracing:
    """The tracer of one process; see ``ripple.core.tracing.Tracer``."""

    def __init__(
        self,
        endpoint: str,
        process: str,
        pipeline: str,
        now_ns: Callable[[], int],
        limits: SamplerLimits | None = None,
    ) -> None:
        """Send to a collector: ``http://HOST:4318/v1/traces``. now_ns: the monotonic clock.

        The collector's headers (OTEL_EXPORTER_OTLP_HEADERS) reach no other server: redirects are
        not followed.
        """
        about = {"service.name": SERVICE, "service.instance.id": process}
        self._provider = TracerProvider(resource=Resource.create(about))
        session = requests.Session()
        session.max_redirects = 0
        exporter = OTLPSpanExporter(endpoint=endpoint, session=session)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("ripple")
        self._pipeline = pipeline
        self._now_ns = now_ns
        self._sampler = Sampler(limits)

    def begin(
        self, contexts: Sequence[str], *, is_first: bool, stage: int, partition: int, rows: int
    ) -> Spans | None:
        """Begin a span in the trace of each context, or in a new one."""
        parents: dict[int, Context | None] = {}
        for text in contexts:
            context = _W3C.extract({FIELD: text})
            found = trace.get_current_span(context).get_span_context()
            if found.is_valid and found.trace_flags.sampled and len(parents) < CONTEXTS_MAX:
                parents.setdefault(found.trace_id, context)
        if not parents:
            if contexts or not is_first or not self._sampler.admits(self._now_ns()):
                return None
            parents[0] = None
        about: dict[str, str | int] = {
            "ripple.pipeline": self._pipeline,
            "ripple.stage": stage,
            "ripple.partition": partition,
            "ripple.rows": rows,
        }
        none = trace.set_span_in_context(trace.INVALID_SPAN)
        return Spans(
            [
                self._tracer.start_span(NAME, none if one is None else one, attributes=about)
                for one in parents.values()
            ]
        )

    def close(self) -> None:
        """Send the waiting spans, if the collector takes them soon."""
        self._provider.force_flush(FLUSH_MS)
        self._provider.shutdown()


class Spans:
    """A batch's spans, one for each trace."""

    def __init__(self, spans: Sequence[trace.Span]) -> None:
        self._spans = spans

    @property
    def contexts(self) -> tuple[str, ...]:
        """The contexts for child spans."""
        found = []
        for span in self._spans:
            carrier: dict[str, str] = {}
            _W3C.inject(carrier, trace.set_span_in_context(span))
            found.append(carrier[FIELD])
        return tuple(found)

    def end(self, rows: int) -> None:
        """End all of them."""
        for span in self._spans:
            span.set_attribute("ripple.rows_out", rows)
            span.end()
