"""Ripple keeps keyed views of event streams up to date by recomputing only what changed."""

from __future__ import annotations

__version__ = "0.1.0.dev0"
