from datetime import timedelta

import pathway as pw


class Click(pw.Schema):
    user: pw.Json
    at: str


clicks = pw.io.jsonlines.read("clicks.jsonl", schema=Click, mode="static").select(
    user=pw.this.user["id"].as_str(),
    at=pw.this.at.dt.strptime("%Y-%m-%dT%H:%M:%S.%f%:z"),
)
visit = pw.temporal.session(max_gap=timedelta(minutes=10))
sessions = clicks.windowby(clicks.at, window=visit, instance=clicks.user).reduce(
    user=pw.this._pw_instance,
    start=pw.this._pw_window_start.dt.timestamp(unit="ns"),
    clicks=pw.reducers.count(),
)
pw.io.csv.write(sessions, "out.csv")
pw.run(monitoring_level=pw.MonitoringLevel.NONE)
