import polars as pl

at, gap = pl.col("at"), pl.duration(minutes=10)
sessions = (
    pl.scan_ndjson("clicks.jsonl")
    .select(user=pl.col("user").struct.field("id"), at=at.str.to_datetime(time_zone="UTC"))
    .with_columns(session=(at.diff() > gap).cum_sum().fill_null(0).over("user"))
    .group_by("user", "session")
    .agg(start=at.min().dt.epoch("ns"), clicks=pl.len())
    .drop("session")
)
sessions.collect().write_csv("out.csv")
