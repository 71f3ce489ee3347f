import csv
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import csp
from csp import ts

NEW_YORK = ZoneInfo("America/New_York")


class Event(csp.Struct):
    event: str
    user: str
    hour: str


@csp.node
def users(one: ts[Event]):
    with csp.state():
        s_seen = set()
        s_hours = {}
    with csp.stop():
        with open("out.csv", "w") as out:
            for hour, (users, number) in s_hours.items():
                out.write(f"{hour},{len(users)},{number}\n")
    if csp.ticked(one) and one.event not in s_seen:
        s_seen.add(one.event)
        users, number = s_hours.get(one.hour, (set(), 0))
        s_hours[one.hour] = (users | {one.user}, number + 1)


def events():
    with open("events.csv", newline="") as file:
        for row in csv.DictReader(file):
            at = datetime.fromisoformat(row["at"])
            hour = f"{at.astimezone(NEW_YORK):%Y-%m-%d %H}"
            yield (
                at.astimezone(UTC).replace(tzinfo=None),
                Event(event=row["event"], user=row["user"], hour=hour),
            )


@csp.graph
def flow():
    rows = list(events())
    users(csp.curve(Event, rows, push_mode=csp.PushMode.NON_COLLAPSING))


csp.run(flow, starttime=next(events())[0], endtime=timedelta(days=1))
