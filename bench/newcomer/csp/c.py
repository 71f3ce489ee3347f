import json
from datetime import UTC, datetime, timedelta

import csp
from csp import ts


class Click(csp.Struct):
    user: str
    at: datetime


@csp.node
def sessions(click: ts[Click]):
    with csp.state():
        s_begun = {}
        s_rows = []
    with csp.stop():
        rows = s_rows + [(user, start, number) for user, (start, _, number) in s_begun.items()]
        with open("out.csv", "w") as out:
            for user, start, number in rows:
                ns = round(start.replace(tzinfo=UTC).timestamp() * 1_000) * 1_000_000
                out.write(f"{user},{ns},{number}\n")
    if csp.ticked(click):
        start, last, number = s_begun.get(click.user, (click.at, click.at, 0))
        if click.at - last > timedelta(minutes=10):
            s_rows.append((click.user, start, number))
            start, number = click.at, 0
        s_begun[click.user] = (start, click.at, number + 1)


def clicks():
    with open("clicks.jsonl") as file:
        for row in map(json.loads, file):
            at = datetime.fromisoformat(row["at"]).astimezone(UTC).replace(tzinfo=None)
            yield at, Click(user=row["user"]["id"], at=at)


@csp.graph
def flow():
    sessions(csp.curve(Click, list(clicks())))


csp.run(flow, starttime=next(clicks())[0], endtime=timedelta(days=3))
