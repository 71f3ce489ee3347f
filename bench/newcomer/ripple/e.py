import ripple as rp


@rp.record
class Event:
    event: str
    user: str
    at: rp.Timestamp = rp.field(format="iso")


hour = rp.col("at").dt.in_zone("America/New_York").to_string("%Y-%m-%d %H")
users = (
    rp.Pipeline("users")
    .source("events", Event)
    .distinct("once", "event", within="1h")
    .derive("hours", hour=hour)
    .partition("by-hour", key="hour")
    .fold("users", users=rp.count_distinct("user"), number=rp.count())
)
rp.collect(users.sink("rows"), "csv:events.csv?header").to_polars().write_csv("out.csv")
