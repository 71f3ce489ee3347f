"""Pathway: windows that are shown once, with persistence; its sink has no transactions."""

import sys

import pathway as pw

bootstrap, source, sink, folder = sys.argv[1:]
MINUTE_NS = 60_000_000_000


class Trade(pw.Schema):
    symbol: str
    price: float
    size: int
    timestamp_ns: int


settings = {
    "bootstrap.servers": bootstrap,
    "group.id": f"pathway-{source}",
    "auto.offset.reset": "earliest",
}
trades = pw.io.kafka.read(
    settings,
    topic=source,
    schema=Trade,
    format="json",
    autocommit_duration_ms=50,
    name="trades",
)
windows = trades.windowby(
    trades.timestamp_ns,
    window=pw.temporal.tumbling(duration=MINUTE_NS, origin=0),
    behavior=pw.temporal.exactly_once_behavior(),
    instance=trades.symbol,
)
rows = windows.reduce(
    symbol=pw.this._pw_instance,
    window_start_ns=pw.this._pw_window_start,
    vwap=pw.reducers.sum(pw.this.price * pw.this.size) / pw.reducers.sum(pw.this.size),
)
pw.io.kafka.write(rows, settings, topic_name=sink, format="json")

if __name__ == "__main__":
    pw.run(
        monitoring_level=pw.MonitoringLevel.NONE,
        persistence_config=pw.persistence.Config(
            pw.persistence.Backend.filesystem(f"{folder}/state"), snapshot_interval_ms=1000
        ),
    )
