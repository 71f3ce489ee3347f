import csv
from datetime import datetime, timedelta

import csp

MINUTE = timedelta(minutes=1)
EPOCH = datetime(1970, 1, 1)


def trades():
    with open("trades.csv", newline="") as file:
        for row in csv.DictReader(file):
            at = EPOCH + timedelta(microseconds=int(row["at_ns"]) // 1000)
            yield f"{row['symbol']},{row['venue']}", at, float(row["price"]), float(row["size"])


@csp.graph
def bars():
    rows = list(trades())
    for key in sorted({row[0] for row in rows}):
        price = csp.curve(float, [(at, price) for one, at, price, _ in rows if one == key])
        size = csp.curve(float, [(at, size) for one, at, _, size in rows if one == key])
        minute = csp.timer(MINUTE, True)
        within = {"interval": MINUTE, "trigger": minute}
        volume, value = csp.stats.sum(size, **within), csp.stats.sum(price * size, **within)
        found = {
            "open": csp.stats.first(price, **within),
            "high": csp.stats.max(price, **within),
            "low": csp.stats.min(price, **within),
            "close": csp.stats.last(price, **within),
            "volume": volume,
            "vwap": value / volume,
        }
        for name, edge in found.items():
            csp.add_graph_output(f"{key} {name}", csp.filter(volume > 0, edge))


start = min(at for _, at, _, _ in trades()).replace(second=0, microsecond=0)
found = csp.run(bars, starttime=start, endtime=timedelta(hours=4))
with open("out.csv", "w") as out:
    for name in (name for name in found if name.endswith(" open")):
        key = name.removesuffix(" open")
        columns = [
            found[f"{key} {what}"] for what in ("open", "high", "low", "close", "volume", "vwap")
        ]
        for rows in zip(*columns, strict=True):
            at = int((rows[0][0] - MINUTE - EPOCH).total_seconds()) * 1_000_000_000
            out.write(f"{key},{at},{','.join(str(value) for _, value in rows)}\n")
