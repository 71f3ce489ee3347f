import polars as pl

local = pl.col("at").str.to_datetime(time_zone="UTC").dt.convert_time_zone("America/New_York")
users = (
    pl.scan_csv("events.csv")
    .unique("event")
    .group_by(hour=local.dt.strftime("%Y-%m-%d %H"))
    .agg(users=pl.col("user").n_unique(), events=pl.len())
)
users.collect().write_csv("out.csv")
