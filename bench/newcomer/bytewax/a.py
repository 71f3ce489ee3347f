from datetime import UTC, datetime, timedelta

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.connectors.files import CSVSource, FileSink
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import EventClock, TumblingWindower

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def of_key(row):
    at = EPOCH + timedelta(microseconds=int(row["at_ns"]) // 1000)
    return f"{row['symbol']},{row['venue']}", (at, float(row["price"]), int(row["size"]))


def bar(trades):
    prices, volume = [price for _, price, _ in trades], sum(size for _, _, size in trades)
    vwap = sum(price * size for _, price, size in trades) / volume
    return prices[0], max(prices), min(prices), prices[-1], volume, vwap


def line(item):
    key, (number, trades) = item
    values = ",".join(map(str, bar(trades)))
    return key, f"{key},{number * 60_000_000_000},{values}"


flow = Dataflow("bars")
trades = op.map("trade", op.input("trades", flow, CSVSource("trades.csv")), of_key)
clock = EventClock(ts_getter=lambda trade: trade[0], wait_for_system_duration=timedelta(0))
windower = TumblingWindower(length=MINUTE, align_to=EPOCH)
windows = win.collect_window("minute", trades, clock, windower)
op.output("out", op.map("line", windows.down, line), FileSink("out.csv"))
