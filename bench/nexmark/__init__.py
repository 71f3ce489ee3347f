"""Nexmark: its events, its queries as pipelines, and their comparison with SQL and other engines.

data        the events, made by the crate ``nexmark`` (generator)
queries     pipelines and SQL
results     rows, and their differences
engines     the engines compared
published   figures of another engine, as published
figures     ``python -m bench nexmark``
"""

from __future__ import annotations

from bench.nexmark.figures import measure

__all__ = ["measure"]
