from datetime import datetime
from zoneinfo import ZoneInfo

import bytewax.operators as op
from bytewax.connectors.files import CSVSource, FileSink
from bytewax.dataflow import Dataflow

NEW_YORK = ZoneInfo("America/New_York")


def first(seen, row):
    return True, None if seen else row


def of_hour(row):
    at = datetime.fromisoformat(row["at"]).astimezone(NEW_YORK)
    return f"{at:%Y-%m-%d %H}", row["user"]


def count(state, user):
    users, number = state
    users.add(user)
    return users, number + 1


flow = Dataflow("users")
events = op.input("events", flow, CSVSource("events.csv"))
by_id = op.stateful_map("once", op.key_on("event", events, lambda row: row["event"]), first)
once = op.filter_map("new", by_id, lambda item: item[1])
hours = op.fold_final("users", op.map("hour", once, of_hour), lambda: (set(), 0), count)
text = op.map("line", hours, lambda one: (one[0], f"{one[0]},{len(one[1][0])},{one[1][1]}"))
op.output("out", text, FileSink("out.csv"))
