import pathway as pw


class Event(pw.Schema):
    event: str
    user: str
    at: str


events = pw.io.csv.read("events.csv", schema=Event, mode="static")
once = events.groupby(pw.this.event).reduce(
    user=pw.reducers.any(pw.this.user), at=pw.reducers.any(pw.this.at)
)
utc = pw.this.at.dt.strptime("%Y-%m-%dT%H:%M:%SZ").dt.to_utc("UTC")
local = utc.dt.to_naive_in_timezone("America/New_York")
hours = once.select(pw.this.user, hour=local.dt.strftime("%Y-%m-%d %H"))
by_user = hours.groupby(pw.this.hour, pw.this.user).reduce(pw.this.hour, events=pw.reducers.count())
users = by_user.groupby(pw.this.hour).reduce(
    pw.this.hour, users=pw.reducers.count(), events=pw.reducers.sum(pw.this.events)
)
pw.io.csv.write(users, "out.csv")
pw.run(monitoring_level=pw.MonitoringLevel.NONE)
