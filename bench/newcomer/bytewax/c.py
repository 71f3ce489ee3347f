import json
from datetime import UTC, datetime, timedelta

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.connectors.files import FileSink, FileSource
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import EventClock, SessionWindower


def of_user(text):
    click = json.loads(text)
    return click["user"]["id"], datetime.fromisoformat(click["at"]).astimezone(UTC)


def line(item):
    user, (_, times) = item
    return user, f"{user},{round(times[0].timestamp() * 1_000) * 1_000_000},{len(times)}"


flow = Dataflow("sessions")
clicks = op.map("click", op.input("clicks", flow, FileSource("clicks.jsonl")), of_user)
clock = EventClock(ts_getter=lambda at: at, wait_for_system_duration=timedelta(0))
windower = SessionWindower(gap=timedelta(minutes=10))
windows = win.collect_window("visit", clicks, clock, windower)
op.output("out", op.map("line", windows.down, line), FileSink("out.csv"))
