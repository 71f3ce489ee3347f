import polars as pl

price, size = pl.col("price"), pl.col("size")
bars = (
    pl.scan_csv("trades.csv")
    .group_by("symbol", "venue", start=pl.col("at_ns") // 60_000_000_000 * 60_000_000_000)
    .agg(
        open=price.first(),
        high=price.max(),
        low=price.min(),
        close=price.last(),
        volume=size.sum(),
        vwap=(price * size).sum() / size.sum(),
    )
)
bars.collect().write_csv("out.csv")
