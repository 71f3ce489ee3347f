"""Queries of a market, with late and equal times: ``python -m bench market``.

data        the events, from a seed
records     the records of the sources
query       a query: pipeline, oracle, peers; its rows and their digest
joins       rows with others; folds: of trades in their order; books; positions
figures     rows first, then times; csp_peer: a script for csp
"""

from __future__ import annotations

from bench.market.figures import measure

__all__ = ["measure"]
