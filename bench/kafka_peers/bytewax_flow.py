"""Bytewax: a fold over tumbling windows of event time, with recovery, without transactions."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.connectors.kafka import KafkaSinkMessage
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import EventClock, TumblingWindower
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.run import cli_main

bootstrap, source, sink, folder = sys.argv[1:]
ALIGN = datetime(2023, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def keyed(message):
    trade = json.loads(message.value)
    trade["at"] = datetime.fromtimestamp(trade["timestamp_ns"] / 1e9, UTC)
    return trade["symbol"], trade


def fold(sums, trade):
    return sums[0] + trade["price"] * trade["size"], sums[1] + trade["size"]


def merge(one, other):
    return one[0] + other[0], one[1] + other[1]


def message(row):
    symbol, (window, (notional, volume)) = row
    start_ns = int((ALIGN + window * MINUTE).timestamp()) * 1_000_000_000
    held = {"symbol": symbol, "window_start_ns": start_ns, "vwap": notional / volume}
    return KafkaSinkMessage(symbol.encode(), json.dumps(held).encode())


flow = Dataflow("vwap")
trades = kop.input("in", flow, brokers=[bootstrap], topics=[source], batch_size=1000)
by_symbol = op.map("keyed", trades.oks, keyed)
clock = EventClock(lambda trade: trade["at"], wait_for_system_duration=timedelta(0))
windower = TumblingWindower(length=MINUTE, align_to=ALIGN)
sums = win.fold_window("sums", by_symbol, clock, windower, lambda: (0.0, 0), fold, merge)
kop.output("out", op.map("rows", sums.down, message), brokers=[bootstrap], topic=sink)

if __name__ == "__main__":
    state = Path(folder) / "state"
    if not state.exists():
        state.mkdir()
        init_db_dir(state, 1)
    cli_main(
        flow, epoch_interval=timedelta(milliseconds=50), recovery_config=RecoveryConfig(str(state))
    )
