import polars as pl

newest = pl.scan_csv("quotes.csv").group_by("symbol").agg(bid=pl.col("bid").last())
positions = (
    pl.scan_csv("fills.csv")
    .group_by("account", "symbol")
    .agg(
        quantity=pl.col("quantity").sum(),
        cost=(pl.col("quantity") * pl.col("price")).sum(),
    )
    .join(newest, on="symbol")
    .select(
        "account",
        "symbol",
        "quantity",
        pnl=pl.col("quantity") * pl.col("bid") - pl.col("cost"),
    )
)
positions.collect().write_csv("out.csv")
