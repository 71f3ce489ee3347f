"""Event time: window assigners, watermarks, verdicts and triggers.

spec        windows as declared; duration, instant: spans and times as text
watermark   verdicts, event by event; assign, sessions: which windows an event is in
book        the open windows of a fold; timers: slots due at a time
"""

from __future__ import annotations

from ripple.model.window.duration import duration_ns
from ripple.model.window.spec import (
    Assigner,
    OnCount,
    OnEveryElement,
    OnInterval,
    OnWatermark,
    Session,
    Sliding,
    Trigger,
    Tumbling,
    WindowSpec,
    ZonedTumbling,
    window_spec,
)

__all__ = [
    "Assigner",
    "OnCount",
    "OnEveryElement",
    "OnInterval",
    "OnWatermark",
    "Session",
    "Sliding",
    "Trigger",
    "Tumbling",
    "WindowSpec",
    "ZonedTumbling",
    "duration_ns",
    "window_spec",
]
