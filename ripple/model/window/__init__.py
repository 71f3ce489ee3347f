"""Event time: window assigners, watermarks, verdicts and triggers.

spec        windows as declared; duration, instant: spans and times as text
trading     windows of trading sessions; trading_tables: sessions of users and exchanges
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
from ripple.model.window.trading import TradingSessions

__all__ = [
    "Assigner",
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
