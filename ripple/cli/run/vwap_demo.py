"""``ripple-vwap-demo``: VWAP per symbol over trades from a file, standard input or a generator."""

from __future__ import annotations

import argparse
import gc
import sys
import time
from typing import TYPE_CHECKING

import ripple as rp
from ripple.cli.lib.exits import Parser, exit_code
from ripple.cli.lib.number_options import count, positive, window_span_ns
from ripple.cli.lib.path_options import a_place
from ripple.cli.lib.rejects import all_rejected, open_letters, say_counts
from ripple.cli.lib.statistics import (
    exceptions,
    say_statistics,
    throughput,
    uncomputable,
)
from ripple.cli.lib.without_pandas import keep_pandas_out
from ripple.cli.run.final_rows import FinalRows
from ripple.connectors.files.csv.format import CsvFormat
from ripple.connectors.files.csv.source import CsvSource
from ripple.connectors.files.text.sink import TextFormat, TextSink
from ripple.connectors.identity import check_apart
from ripple.connectors.record_shape import TIMESTAMP_NS_END
from ripple.connectors.source_inputs import SourceInputs
from ripple.connectors.synthetic.source import SYMBOLS, SyntheticSource
from ripple.connectors.target import open_target
from ripple.model.window import watermark
from ripple.task.one_shot import at_once
from ripple.task.one_shot_run import plain_life
from ripple.task.progress import Progress, terminal
from ripple.task.report import Report
from ripple.task.settings import BATCH_ROWS

if TYPE_CHECKING:
    from ripple.connectors.contract import Sink, Source
    from ripple.engine.machine.partition import Partition
    from ripple.model.pipeline.plan import Plan

PROGRAM = "ripple-vwap-demo"
SYNTHETIC_DEFAULT = 100_000
VWAP_DECIMALS = 4


@rp.record(version=1)
class Trade:
    """A trade as exchanges report it."""

    symbol: str = rp.field(min_length=1)
    price: float = rp.field(finite=True)
    size: int = rp.field(gt=0)
    timestamp_ns: rp.Timestamp = rp.field(ge=0, lt=TIMESTAMP_NS_END)
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
    if arguments is None:
        keep_pandas_out()
    return exit_code(PROGRAM, lambda: _run(_parser().parse_args(arguments)))


def _run(options: argparse.Namespace) -> int:
    started_s = time.perf_counter()
    check_apart(
        "-" if options.stdin else options.file,
        ["-"] if options.dead_letter is None else ["-", options.dead_letter],
    )
    plan = vwap_pipeline(options.window).plan()
    source = SourceInputs(_source(options, plan), name=plan.source.name)
    progress = Progress(source, terminal())
    sink = _sink(options)
    counting = sink if isinstance(sink, FinalRows) else None
    # Objects of start-up live to the end: the collector need not scan them again and again.
    gc.freeze()
    life = plain_life(
        plan,
        source,
        {"output": lambda: sink},
        lambda: open_letters(PROGRAM, options, progress, file=options.file),
        strict=options.strict,
        file=options.file,
        on_batch=progress,
    )
    try:
        report = at_once(life.run())
    finally:
        progress.clear()
    say_counts(report.rejected, report.letters)
    _say_results(life.engine, report, counting, time.perf_counter() - started_s)
    if report.rejected.total() == report.consumed > 0:
        raise all_rejected(options.file or "standard input", report.consumed, report.letters)
    return 0


def _source(options: argparse.Namespace, plan: Plan) -> Source:
    if options.file is None and not options.stdin:
        return SyntheticSource(options.synthetic, batch_rows=options.batch)
    trades = CsvFormat(plan.source.schema, plan.source.checks, comments="anywhere")
    return CsvSource("-" if options.stdin else options.file, trades, batch_rows=options.batch)


def _sink(options: argparse.Namespace) -> Sink:
    start = () if options.window is None else ("window_start_ns",)
    form = TextFormat(
        options.format,
        {"vwap": VWAP_DECIMALS},
        header=options.header,
        columns=("symbol", *start, "vwap", "total_volume", "trade_count"),
    )
    sink = TextSink(open_target("-"), form)
    if options.window is None and not options.final:
        return sink  # the engine knows the number of symbols
    return FinalRows(sink, only_final=options.final)


def _say_results(
    engine: Partition, report: Report, counting: FinalRows | None, elapsed_s: float
) -> None:
    counters = engine.counters
    if counting is None:
        absent = report.uncomputable.get("vwap")
        symbols = engine.table("output").num_rows + (absent.count if absent else 0)
        rows_written = report.rows_out
    else:
        symbols, rows_written = counting.symbols, counting.rows_written
    watermark_ns = report.watermark_ns
    lines = [
        ("Events processed", f"{counters.consumed}"),
        ("Symbols", f"{symbols}"),
        ("Graph nodes", f"{engine.graph.node_count}"),
        ("Stabilizations", f"{report.stabilizations}"),
        *throughput(counters.consumed, elapsed_s),
        ("Watermark", "none" if watermark_ns == watermark.NONE else f"{watermark_ns} ns"),
    ]
    if "portfolio-total" in engine.digests:
        totals = engine.table("portfolio-total").column("portfolio_total").to_pylist()
        lines.append(("Portfolio total", f"{totals[0] if totals else 0.0:.2f}"))
    lines.append(("Output records", f"{rows_written}"))
    say_statistics(
        "--- Ripple VWAP Demo Results ---", [*lines, *exceptions(engine), *uncomputable(engine)]
    )


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM,
        description=(
            "Volume-weighted average prices of trades, kept incrementally and exactly. Input lines "
            "are symbol,price,size,timestamp_ns,venue; output lines symbol,vwap,total_volume,"
            "trade_count, one for each symbol that a batch changed, in the order of first change. "
            "Malformed lines are reported, counted and skipped. Statistics go to standard error."
        ),
        epilog=(
            "Exit codes: 0 success, 1 wrong arguments or a failure (one line says which), 130 "
            "Ctrl+C, 141 the output's reader went away, 143 SIGTERM."
        ),
    )
    given = parser.add_mutually_exclusive_group()
    given.add_argument(
        "--synthetic",
        type=count,
        metavar="N",
        default=SYNTHETIC_DEFAULT,
        help=f"N generated trades over {SYMBOLS} symbols (the default, {SYNTHETIC_DEFAULT})",
    )
    given.add_argument(
        "--file", type=a_place, metavar="FILE", help="a CSV file; .gz and .zst are decompressed"
    )
    given.add_argument("--stdin", action="store_true", help="CSV on standard input")
    parser.add_argument(
        "--batch",
        type=positive,
        metavar="N",
        default=BATCH_ROWS,
        help=f"events between two outputs ({BATCH_ROWS}); fewer if input arrives slowly",
    )
    parser.add_argument(
        "--window",
        type=window_span_ns,
        metavar="SPAN",
        help="tumbling windows of event time, such as 60s: a row when a window closes, and at the "
        "end for open ones, with window_start_ns as second column. A trade that is up to 60s late "
        "prints the corrected row of its closed window again: the last row of a symbol and window "
        "counts",
    )
    parser.add_argument(
        "--final", action="store_true", help="only the last row of each symbol, sorted by symbol"
    )
    parser.add_argument("--format", choices=("csv", "json"), default="csv", help="output format")
    parser.add_argument("--header", action="store_true", help="begin CSV output with column names")
    parser.add_argument(
        "--dead-letter",
        type=a_place,
        metavar="FILE",
        help="write rejected records there, as JSON lines",
    )
    parser.add_argument(
        "--strict", action="store_true", help="stop at the first rejected record, exit code 1"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
