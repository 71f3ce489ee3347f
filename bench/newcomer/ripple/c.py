import ripple as rp


@rp.record
class User:
    id: str


@rp.record
class Click:
    user: User
    at: rp.Timestamp = rp.field(format="iso")


sessions = (
    rp.Pipeline("sessions")
    .source("clicks", Click)
    .partition("by-user", key="user.id")
    .window("visit", rp.Session("10min"))
    .fold("visits", clicks=rp.count())
    .sink("sessions")
)
rp.collect(sessions, "clicks.jsonl").to_polars().write_csv("out.csv")
