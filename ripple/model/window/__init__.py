"""Event time: window assigners, watermarks, verdicts and triggers.

spec              windows as declared; duration, instant: spans and times as text
trading_sessions  rp.TradingSessions; trading_tables: the sessions that users and exchanges give
watermark         verdicts, event by event; assign, sessions: the windows of an event
book              the open windows of a fold; timers: slots due at a time
"""

from __future__ import annotations

from ripple.model.window.duration import duration_ns
from ripple.model.window.spec import (
    Assigner,
    Last,
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
from ripple.model.window.trading_sessions import TradingSessions

__all__ = [
    "Assigner",
    "Last",
    "OnCount",
    "OnEveryElement",
    "OnInterval",
    "OnWatermark",
    "Session",
    "Sliding",
    "TradingSessions",
    "Trigger",
    "Tumbling",
    "WindowSpec",
    "ZonedTumbling",
    "duration_ns",
    "window_spec",
]
