"""Outputs that are shown in a notebook while their run goes on."""

from __future__ import annotations

from ripple.client.live.table import LiveTable

__all__ = ["LiveTable"]
