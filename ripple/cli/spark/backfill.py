"""History, computed on Spark into the initial state of live workers, and its receipt."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ripple.cli.lib.number_options import count
from ripple.cli.lib.output_forms import add_format, as_json, write
from ripple.cli.lib.path_options import STORE, a_place, a_store
from ripple.cli.lib.pipeline_options import add_file
from ripple.cli.lib.report_files import check_files
from ripple.cli.spark.input import load_for_spark
from ripple.cli.spark.session import (
    Progress,
    configure_header,
    configure_session,
    opened,
)
from ripple.connectors.locate import sources_by_name
from ripple.core.arguments import shown
from ripple.core.errors import InputError
from ripple.spark.backfill.given import A_DATAFRAME, history_at, history_texts
from ripple.spark.backfill.live import Live
from ripple.spark.backfill.receipt import Receipt
from ripple.spark.dataframe.places import SparkPlace
from ripple.spark.options import Bound


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``ripple spark backfill``."""
    add_file(parser)
    parser.add_argument(
        "--history",
        type=a_place,
        action="append",
        required=True,
        metavar="[SOURCE=]URI",
        help="a file of any connector, a folder or glob of files, a log, table:NAME, or "
        "[FORMAT:]PATH of a file system of Hadoop; in any order. Once for each source of events",
    )
    parser.add_argument(
        "--until", required=True, metavar="TIME", help="end of history, in event time"
    )
    parser.add_argument(
        "--live",
        type=a_place,
        action="append",
        required=True,
        metavar="[SOURCE=]URI",
        help="the live source, log:DIR/TOPIC or kafka:BROKERS/TOPIC; it must reach back a "
        "bit before. Once for each source of the pipeline",
    )
    parser.add_argument(
        "--store",
        type=a_store,
        required=True,
        metavar=STORE,
        help="checkpoint store; it must hold no state of the pipeline",
    )
    parser.add_argument(
        "--partitions",
        type=count,
        metavar="N",
        help="of the pipeline: 1 for ripple run (as many as the topic, for a cluster)",
    )
    parser.add_argument(
        "--identity",
        metavar="FIELD,...",
        help="fields that identify a record (default: all fields)",
    )
    parser.add_argument(
        "--allow-unproven",
        action="store_true",
        help="allow a log without records before --until, which could be compared",
    )
    parser.add_argument("--receipt", type=a_place, metavar="FILE", help="write it there, as JSON")
    parser.add_argument(
        "--dead-letter", type=a_place, metavar="FILE", help="write rejected records, as JSON lines"
    )
    configure_header(parser)
    configure_session(parser)
    add_format(parser)


def configure_receipt(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``ripple spark receipt``."""
    add_file(parser)
    parser.add_argument("receipt", type=a_place, metavar="RECEIPT.json", help="of the backfill")
    configure_session(parser)
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Backfill; return the exit code."""
    check_files(options.receipt, options.dead_letter)
    until_ns = _time_ns(options.until)
    plan = load_for_spark(options.file, has_markers=True, has_tables=True)
    live = sources_by_name(plan, options.live, "--live")
    own = history_texts(plan, options.history, live)
    history = sources_by_name(plan, own, "--history")
    if not any(SparkPlace.of(place) for place in history.values()):
        history_at(history, plan, live, header=options.header)
    Live.at(live, plan, until_ns, options.partitions)
    with opened(options) as spark:
        from ripple.spark.backfill.backfilling import Backfill  # noqa: PLC0415 - imports pyspark

        one = Backfill(
            spark,
            options.file,
            history,
            until_ns=until_ns,
            live=live,
            store=options.store,
            partitions=options.partitions,
            identity=options.identity.split(",") if options.identity else (),
            header=options.header,
        )
        with Progress() as progress:
            found = one.run(allows_unproven=options.allow_unproven, show=progress.show)
    if options.receipt is not None:
        Path(options.receipt).write_text(as_json(found.as_dict(), indent=1) + "\n")
    if options.dead_letter is not None:
        lines = [json.dumps(letter, ensure_ascii=False) for letter in found.letters]
        Path(options.dead_letter).write_text("".join(f"{line}\n" for line in lines))
    write(options.format, found.as_dict(), lambda: print(found.text()))
    return 0


def run_receipt(options: argparse.Namespace) -> int:
    """Compute a backfill again and compare; return the exit code."""
    try:
        known = Receipt.of(Path(options.receipt).read_text(), options.receipt)
    except OSError as error:
        raise InputError(f"cannot read {options.receipt}: {error.strerror}") from error
    places = known.history.values() if isinstance(known.history, Mapping) else [known.history]
    if A_DATAFRAME in places:
        raise InputError(
            f"the history of {options.receipt} was {A_DATAFRAME}, which a command cannot read: "
            "check it in Python, with Backfill(spark, ..., df, ...).check(receipt)"
        )
    with opened(options) as spark:
        from ripple.spark.backfill.backfilling import Backfill  # noqa: PLC0415 - imports pyspark

        one = Backfill(
            spark,
            options.file,
            known.history,
            until_ns=known.until_ns,
            live=known.live,
            store=known.store,
            partitions=len(known.partitions),
            identity=known.identity,
            header=known.header,
        )
        with Progress() as progress:
            problems = one.check(known, show=progress.show)
    lines = [*problems, "", "does not hold" if problems else "holds"]
    value = {"holds": not problems, "problems": list(problems)}
    write(options.format, value, lambda: print("\n".join(lines).strip()))
    return 1 if problems else 0


def _time_ns(text: str) -> int:
    with suppress(InputError):
        found = Bound.parse(text, "--until").time_ns
        if found is not None:
            return found
    raise InputError(
        "--until is a time, such as 2024-02-26T14:30:00Z or 1708957800000000000ns, not "
        f"{shown(text)}"
    )
