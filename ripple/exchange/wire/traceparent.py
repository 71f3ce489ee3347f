"""The W3C ``traceparent`` header, strictly.

Source: https://www.w3.org/TR/trace-context/#traceparent-header, level 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ripple.exchange.wire.errors import LocalProtocolError

_TRACE = re.compile(r"[0-9a-f]{32}")
_SPAN = re.compile(r"[0-9a-f]{16}")
_HEADER = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 0x01


@dataclass(frozen=True, slots=True)
class Traceparent:
    """A trace and a span: 32 and 16 lowercase hexadecimal digits, neither all zero."""

    trace_id: str
    span_id: str
    sampled: bool = True

    def __post_init__(self) -> None:
        for name, text, form in (
            ("trace_id", self.trace_id, _TRACE),
            ("span_id", self.span_id, _SPAN),
        ):
            if not form.fullmatch(text) or not text.strip("0"):
                raise LocalProtocolError(f"{name} {text!r:.60} is not a W3C identifier")

    def __str__(self) -> str:
        """Return the header's text, version 00."""
        return f"00-{self.trace_id}-{self.span_id}-{_SAMPLED if self.sampled else 0:02x}"


def parse(text: str) -> Traceparent:
    """Read a header; raises :class:`LocalProtocolError` (a ValueError) on any other text.

    Later versions may append fields, which are ignored; version ff is forbidden, and flags
    other than ``sampled`` are dropped, as the recommendation wants.
    """
    found = _HEADER.fullmatch(text)
    if found is None:
        raise LocalProtocolError(f"not a traceparent: {text!r:.80}")
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more):
        raise LocalProtocolError(f"not a traceparent of version {version}: {text!r:.80}")
    return Traceparent(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))
