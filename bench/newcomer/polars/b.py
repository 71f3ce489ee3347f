import polars as pl

price = pl.col("price")
alerts = (
    pl.scan_csv("trades.csv")
    .with_columns(at=pl.from_epoch("at_ns", time_unit="ns"))
    .group_by_dynamic("at", every="1m", period="5m", group_by="symbol", start_by="window")
    .agg(last=price.last(), mean=price.mean(), deviation=price.std())
    .filter(pl.col("deviation") > 0)
    .select(
        "symbol",
        pl.col("at").dt.epoch("ns"),
        z=(pl.col("last") - pl.col("mean")) / pl.col("deviation"),
    )
    .filter(pl.col("z").abs() > 2)
)
alerts.collect().write_csv("out.csv")
