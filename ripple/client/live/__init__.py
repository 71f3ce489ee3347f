"""Live outputs in a notebook, during their run."""

from __future__ import annotations

from ripple.client.live.table import LiveTable

__all__ = ["LiveTable"]
