from datetime import UTC, datetime, timedelta
from statistics import mean, stdev

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.connectors.files import CSVSource, FileSink
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import EventClock, SlidingWindower

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def of_symbol(row):
    at = EPOCH + timedelta(microseconds=int(row["at_ns"]) // 1000)
    return row["symbol"], (at, float(row["price"]))


def line(item):
    symbol, (number, trades) = item
    prices = [price for _, price in trades]
    deviation = stdev(prices) if len(prices) > 1 else 0
    score = (prices[-1] - mean(prices)) / deviation if deviation else 0
    return (symbol, f"{symbol},{number * 60_000_000_000},{score}") if abs(score) > 2 else None


flow = Dataflow("alerts")
trades = op.map("trade", op.input("trades", flow, CSVSource("trades.csv")), of_symbol)
clock = EventClock(ts_getter=lambda trade: trade[0], wait_for_system_duration=timedelta(0))
windower = SlidingWindower(length=5 * MINUTE, offset=MINUTE, align_to=EPOCH)
windows = win.collect_window("five", trades, clock, windower)
op.output("out", op.filter_map("alert", windows.down, line), FileSink("out.csv"))
