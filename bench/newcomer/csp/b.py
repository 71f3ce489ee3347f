import csv
from datetime import datetime, timedelta

import csp

MINUTE = timedelta(minutes=1)
EPOCH = datetime(1970, 1, 1)


def trades():
    with open("trades.csv", newline="") as file:
        for row in csv.DictReader(file):
            at = EPOCH + timedelta(microseconds=int(row["at_ns"]) // 1000)
            yield row["symbol"], at, float(row["price"])


@csp.graph
def alerts():
    rows = list(trades())
    for symbol in sorted({row[0] for row in rows}):
        price = csp.curve(float, [(at, price) for one, at, price in rows if one == symbol])
        within = {"interval": 5 * MINUTE, "trigger": csp.timer(MINUTE, True), "min_data_points": 1}
        mean, deviation = csp.stats.mean(price, **within), csp.stats.stddev(price, **within)
        score = (csp.stats.last(price, **within) - mean) / deviation
        csp.add_graph_output(symbol, csp.filter(csp.abs(score) > 2, score))


begin = min(at for _, at, _ in trades()).replace(second=0, microsecond=0)
with open("out.csv", "w") as out:
    for symbol, rows in csp.run(alerts, starttime=begin, endtime=timedelta(hours=4)).items():
        for at, score in rows:
            start = int((at - 5 * MINUTE - EPOCH).total_seconds()) * 1_000_000_000
            out.write(f"{symbol},{start},{score}\n")
