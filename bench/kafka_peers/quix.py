"""Quix Streams: tumbling windows of several aggregations, exactly once by transactions."""

import sys
from datetime import timedelta

from quixstreams import Application
from quixstreams.dataframe.windows import Sum

bootstrap, source, sink, folder = sys.argv[1:]

app = Application(
    broker_address=bootstrap,
    consumer_group=f"quix-{source}",
    auto_offset_reset="earliest",
    processing_guarantee="exactly-once",
    commit_interval=0.05,
    state_dir=f"{folder}/state",
    loglevel="WARNING",
)


def time_of(value, headers, timestamp, timestamp_type):
    return value["timestamp_ns"] // 1_000_000


trades = app.topic(source, value_deserializer="json", timestamp_extractor=time_of)
out = app.topic(sink, value_serializer="json", key_serializer="bytes")

sdf = app.dataframe(trades)
sdf["notional"] = sdf["price"] * sdf["size"]
sdf = (
    sdf.tumbling_window(timedelta(minutes=1))
    .agg(notional=Sum("notional"), volume=Sum("size"))
    .final()
)
sdf = sdf.apply(
    lambda row, key, timestamp, headers: {
        "symbol": key.decode(),
        "window_start_ns": row["start"] * 1_000_000,
        "vwap": row["notional"] / row["volume"],
    },
    metadata=True,
)
sdf = sdf.to_topic(out)

if __name__ == "__main__":
    app.run()
