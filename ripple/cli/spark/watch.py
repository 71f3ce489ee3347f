"""``ripple spark validate --watch``: continuously compares a sample of the keys."""

from __future__ import annotations

import argparse
import asyncio
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.cli.lib.exits import say
from ripple.cli.lib.number_options import count
from ripple.cli.lib.output_forms import write_line
from ripple.cli.lib.path_options import an_address
from ripple.cli.spark.input import load_for_spark
from ripple.cli.spark.session import PROGRAM, Stopping, opened
from ripple.connectors.locate import sources_by_name
from ripple.control.probes import Page, serve_pages
from ripple.control.telemetry.metrics import OF_WATCHES
from ripple.control.telemetry.samples import Samples
from ripple.core.errors import InputError, RippleError
from ripple.model.window import duration_ns
from ripple.spark.sampling import Sample
from ripple.world import LiveNetwork

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ripple.spark.validating import Watching
    from ripple.spark.verdict import Verdict

_SAMPLE, _PAUSE = "1%", "60s"
_OF_WATCHES = ("sample", "pause", "rounds", "metrics")
_OF_OTHERS = ("crashes", "oracle", "seed", "json", "html", "from", "to", "header", "markers")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a watch to those of ``validate``."""
    group = parser.add_argument_group(
        "watching",
        "Outputs in logs (--against) are compared with a fresh evaluation of a sample of keys, "
        "another one each round; the first row that differs is printed, and the watch continues.",
    )
    group.add_argument("--watch", action="store_true", help="compare continuously")
    group.add_argument(
        "--sample", metavar="SHARE", help=f"of the keys, each round ({_SAMPLE})".replace("%", "%%")
    )
    group.add_argument("--pause", metavar="SPAN", help=f"between two rounds ({_PAUSE})")
    group.add_argument(
        "--rounds",
        type=count,
        metavar="N",
        help="end after N rounds; exit code 1 if a row differed or was not compared",
    )
    group.add_argument(
        "--metrics",
        type=an_address,
        metavar="[HOST]:PORT",
        help="serve /metrics there, for Prometheus; on this machine only without HOST",
    )


def check(options: argparse.Namespace) -> None:
    """Raise InputError for an option without effect."""
    given = vars(options) | {"from": options.start, "to": options.stop}
    for name in _OF_OTHERS if options.watch else _OF_WATCHES:
        if given[name]:
            how = "does not go with --watch" if options.watch else "goes with --watch"
            raise InputError(f"--{name} {how}")


def run(options: argparse.Namespace) -> int:
    """Watch until a signal, or the end of the rounds; return the exit code."""
    sample = Sample.of_share(options.sample or _SAMPLE)
    pause_s = duration_ns(options.pause or _PAUSE) / 1e9
    # After a restart it must not compare the same parts again.
    sample = replace(sample, at=int(time.time() / max(pause_s, 1)) % sample.of)
    plan = load_for_spark(options.file, "a watch on Spark")
    report = _Report(plan.name, options.format)
    if options.metrics is not None:
        _show(options.metrics, {"/metrics": report.page})
    with opened(options) as spark:
        from ripple.spark.validating import Watching  # noqa: PLC0415 - imports pyspark

        watching = Watching(
            spark,
            options.file,
            sources_by_name(plan, options.source),
            against=tuple(options.against),
            sample=sample,
            engine=options.engine,
        )
        stopping, done = Stopping(spark), 0
        while not stopping and done != options.rounds:
            report.round(watching, stopping)
            done += 1
            if done != options.rounds:
                stopping.wait(pause_s)
    stopping.say()
    return report.code(is_over=not stopping) or stopping.code


class _Report:
    """The findings of rounds, as metrics and as lines."""

    def __init__(self, pipeline: str, form: str) -> None:
        self._pipeline = pipeline
        self._form = form
        self._samples = Samples()
        self._failure = ""
        self._notes: set[str] = set()
        self._compared = self._failures = 0
        self.differed = False
        for one in OF_WATCHES:
            self._samples.set(one.name, float(one.name.endswith("_holds")), pipeline)

    def code(self, *, is_over: bool) -> int:
        """Return 1 on a difference; after all rounds, also if a round or the output was missing."""
        if is_over and not self._compared:
            say(f"{PROGRAM}: nothing was compared: no key of the output was in a part")
        missing = is_over and (self._failures or not self._compared)
        return 1 if self.differed or missing else 0

    def page(self) -> Page:
        """Return the metrics."""
        from ripple.control.telemetry.exposition import CONTENT_TYPE, exposition  # noqa: PLC0415 - an extra

        return Page(exposition(OF_WATCHES, self._samples), content_type=CONTENT_TYPE)

    def round(self, watching: Watching, stopping: Stopping | None = None) -> None:
        """Compare once; a failed round is reported, and the next one is tried."""
        part = f"part {watching.sample.at % watching.sample.of + 1} of {watching.sample.of}"
        try:
            verdict = watching.round()
        except RippleError as error:
            if stopping:
                return  # which gave it up
            self._failures += 1
            self._add("failures_total", 1)
            if str(error) != self._failure:
                say(f"{PROGRAM}: {part} was not compared: {error}")
            self._failure = str(error)
            return
        self._failure = ""
        self._found(verdict, part)

    def _found(self, verdict: Verdict, part: str) -> None:
        differing = len(verdict.differences)
        compared = sum(one["cases"] for one in verdict.findings)
        self._add("rounds_total", 1)
        self._add("compared_total", compared)
        self._add("differences_total", differing)
        self._samples.set("ripple_validate_holds", not differing, self._pipeline)
        if differing:
            self.differed = True
            if self._form == "text":
                print(verdict.text(), flush=True)
            else:
                write_line(self._form, verdict.as_dict())
        self._compared += compared
        equal = (
            f"{compared:,} compared, all equal" if compared else "nothing of the output is in it"
        )
        differ = f"{compared:,} compared, {differing} differ"
        say(f"{PROGRAM}: {part}: {differ if differing else equal}")
        for one in verdict.findings:
            note = f"{one['of']}: {one['note']}"
            if one["note"] and note not in self._notes:  # one or two of each output
                self._notes.add(note)
                say(f"{PROGRAM}: {note}")

    def _add(self, name: str, value: float) -> None:
        self._samples.add(f"ripple_validate_{name}", value, self._pipeline)


def _show(address: str, pages: Mapping[str, Callable[[], Page]]) -> None:
    """Serve pages from a thread for the life of the process. Raises InputError."""
    from ripple.control.telemetry import exposition  # noqa: F401, PLC0415 - to report a missing extra

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="ripple-metrics", daemon=True).start()
    serving = serve_pages(LiveNetwork(), address, pages)
    try:
        asyncio.run_coroutine_threadsafe(serving, loop).result()
    except (OSError, UnicodeError) as error:  # the latter: a host name invalid in DNS
        why = getattr(error, "strerror", None) or error
        raise InputError(f"--metrics {address}: {why}") from error
