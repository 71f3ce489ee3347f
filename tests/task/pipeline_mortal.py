"""Pipelines that die of one record, each in its way."""

from __future__ import annotations

import os
import signal

import numpy as np

import ripple as rp

POISON = -1


@rp.record(version=1)
class Tick:
    symbol: str
    size: int
    at_ns: int


def dying(how: str) -> rp.Pipeline:
    def fragile(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if POISON in columns["size"]:
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "exit":
                os._exit(3)
            raise ValueError(how)
        return columns

    return (
        rp.Pipeline("mortal")
        .source("ticks", Tick, time="at_ns")
        .derive("check", share=100 // rp.col("size"))
        .map("fragile", fragile, into=Tick, batch=True)
        .partition("symbols", key="symbol")
        .fold("totals", size=rp.sum("size"), ticks=rp.count())
        .sink("sizes")
    )


by_kill, by_exit, by_raise = dying("kill"), dying("exit"), dying("raise")
