"""``ripple-vwap-demo``: VWAP per symbol over trades from a file, standard input or a generator."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

import ripple as rp
from ripple.cli.exits import EXIT_USAGE, exit_code
from ripple.cli.final_rows import FinalRows
from ripple.cli.progress import Progress
from ripple.connectors.csv_source import CsvSource
from ripple.connectors.dead_letter import DeadLetters
from ripple.connectors.synthetic import SYMBOLS, SyntheticSource
from ripple.connectors.target import open_target
from ripple.connectors.text_sink import TextFormat, TextSink
from ripple.engine import Engine
from ripple.runner import BATCH_ROWS, Report, Runner
from ripple.window import duration_ns

if TYPE_CHECKING:
    from ripple.connectors.base import Sink, Source

PROGRAM = "ripple-vwap-demo"
SYNTHETIC_DEFAULT = 100_000
VWAP_DECIMALS = 4


@rp.record(version=1)
class Trade:
    """A trade as exchanges report it."""

    symbol: str
    price: float
    size: int
    timestamp_ns: rp.Timestamp
    venue: str


def vwap_pipeline(window: str | int | None = None) -> rp.Pipeline:
    """Return VWAP by symbol with the portfolio total, or VWAP by symbol and tumbling window."""
    trades = rp.Pipeline("vwap").source("trades", Trade).partition("by-symbol", key="symbol")
    if window is not None:
        trades = trades.window("tumbling", rp.Tumbling(window))
    vwaps = trades.fold(
        "vwap",
        vwap=rp.vwap("price", "size"),
        total_volume=rp.sum("size"),
        trade_count=rp.count(),
    )
    if window is not None:
        return vwaps.sink("output")
    portfolio = vwaps.partition("portfolio", key=()).fold("total", portfolio_total=rp.sum("vwap"))
    return portfolio.sink("output", of="vwap").sink("portfolio-total")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    return exit_code(PROGRAM, lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    started = time.perf_counter()
    engine = Engine(vwap_pipeline(options.window).plan())
    source, total = _source(options)
    dead = DeadLetters(open_target(options.dead_letter) if options.dead_letter else None)
    form = TextFormat(options.format, {"vwap": VWAP_DECIMALS}, header=options.header)
    output: Sink = TextSink(open_target("-"), form)
    columns = ["symbol", "vwap", "total_volume", "trade_count"]
    if options.window is not None:
        columns.insert(1, "window_start_ns")
    sink = FinalRows(output, columns, only_final=options.final)
    progress = Progress(time.perf_counter, total)
    runner = Runner(
        engine,
        source,
        {"output": sink},
        dead_letters=dead,
        strict=options.strict,
        on_batch=lambda running, _: progress.update(running.counters.consumed),
    )
    try:
        report = runner.run()
    finally:
        progress.clear()
        _print_rejected(dead, options.dead_letter)
    _print_statistics(engine, report, sink, time.perf_counter() - started)
    return 0


def _source(options: argparse.Namespace) -> tuple[Source, int | None]:
    """Return the source and, where it is known, the number of events."""
    if options.file is not None:
        return CsvSource(options.file, batch_rows=options.batch), None
    if options.stdin:
        return CsvSource("-", batch_rows=options.batch), None
    return SyntheticSource(options.synthetic, batch_rows=options.batch), options.synthetic


def _print_rejected(dead: DeadLetters, path: str | None) -> None:
    if dead.total:
        kept = f" (kept in {path})" if path else ""
        print(f"Malformed records: {dead.total}{kept}", file=sys.stderr)
        for reason, count in dead.counts.most_common():
            print(f"  {count:>8}  {reason}", file=sys.stderr)


def _print_statistics(engine: Engine, report: Report, sink: FinalRows, elapsed_s: float) -> None:
    counters = engine.counters
    lines = [
        ("Events processed", f"{counters.consumed}"),
        ("Symbols", f"{sink.symbols}"),
        ("Graph nodes", f"{engine.graph.node_count}"),
        ("Stabilizations", f"{report.stabilizations}"),
        ("Elapsed", f"{elapsed_s:.3f}s"),
        ("Throughput", f"{counters.consumed / elapsed_s:.0f} events/sec"),
        ("Watermark", f"{report.watermark_ns} ns"),
    ]
    if "portfolio-total" in engine.digests:
        totals = engine.table("portfolio-total").column("portfolio_total").to_pylist()
        lines.append(("Portfolio total", f"{totals[0] if totals else 0.0:.2f}"))
    lines.append(("Output records", f"{sink.rows_written}"))
    for name, count in (
        ("Mildly late", counters.mildly_late),
        ("Very late", counters.very_late),
        ("Future", counters.future),
        ("Malformed", counters.dead_lettered),
    ):
        if count:
            lines.append((name, str(count)))
    print("--- Ripple VWAP Demo Results ---", file=sys.stderr)
    for name, value in lines:
        print(f"{name + ':':<18} {value}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description=(
            "Volume-weighted average prices of trades, kept incrementally and exactly. Input lines "
            "are symbol,price,size,timestamp_ns,venue; output lines symbol,vwap,total_volume,"
            "trade_count, one for each symbol that a batch changed. Statistics go to standard "
            "error."
        ),
    )
    given = parser.add_mutually_exclusive_group()
    given.add_argument(
        "--synthetic",
        type=_count,
        metavar="N",
        default=SYNTHETIC_DEFAULT,
        help=f"N generated trades over {SYMBOLS} symbols (the default, {SYNTHETIC_DEFAULT})",
    )
    given.add_argument("--file", metavar="FILE", help="a CSV file; .gz and .zst are decompressed")
    given.add_argument("--stdin", action="store_true", help="CSV on standard input")
    parser.add_argument(
        "--batch",
        type=_positive,
        metavar="N",
        default=BATCH_ROWS,
        help=f"events between two outputs ({BATCH_ROWS})",
    )
    parser.add_argument(
        "--window",
        type=_duration,
        metavar="SPAN",
        help="tumbling windows of event time, such as 60s: a row when a window closes, and at the "
        "end for open ones, with window_start_ns as second column",
    )
    parser.add_argument(
        "--final", action="store_true", help="only the last row of each symbol, sorted by symbol"
    )
    parser.add_argument("--format", choices=("csv", "json"), default="csv", help="of the output")
    parser.add_argument("--header", action="store_true", help="begin CSV output with column names")
    parser.add_argument(
        "--dead-letter", metavar="FILE", help="write malformed records there, as JSON lines"
    )
    parser.add_argument(
        "--strict", action="store_true", help="stop at the first malformed record, exit code 1"
    )
    return parser


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of events")
    return int(text)


def _positive(text: str) -> int:
    if _count(text) == 0:
        raise argparse.ArgumentTypeError("it must be at least 1")
    return int(text)


def _duration(text: str) -> int:
    try:
        span_ns = duration_ns(text)
        rp.Tumbling(span_ns)
    except rp.PlanError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return span_ns


assert EXIT_USAGE == 2  # argparse's own code for wrong arguments

if __name__ == "__main__":
    sys.exit(main())
