"""Suites of tests for a connector: two lines in a file of its author's tests.

    TestSource = source_suite(CONNECTOR, put)
    TestSink = sink_suite(CONNECTOR, place, read)

Each rule of the contracts is a test, and its docstring says the promise. A rule that does not
apply, as the connector does not say that it can, is not there; no test is skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.core.errors import ConnectorError
from ripple.testing.connectors import inputs_rules, sink_rules, source_rules
from ripple.testing.connectors.sink_rules import SinkSubject
from ripple.testing.connectors.source_rules import SourceSubject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ripple.connectors.connector import Connector

    Put = Callable[[Path, list[dict[str, Any]]], str]
    Place = Callable[[Path], str]
    ReadBack = Callable[[str], list[dict[str, Any]]]
    Rule = Callable[[Any, Path], None]


def source_suite(
    connector: Connector,
    put: Put,
    *,
    record: type | None = None,
    once: bool = False,
    changes: Mapping[str, Callable[[Path], object]] | None = None,
    away: Callable[[Path], AbstractContextManager[object]] | None = None,
) -> type:
    """Return a class of tests of ``connector`` as a source, plain and continued.

    put: ``(folder, rows) -> path``: brings records to where the source reads and returns the URI
    without its scheme. ``folder`` is the test's own; called again with it, the rows are added to
    the present ones (of a source that is continued). ``rows`` are mappings of the fields of
    ``ripple.testing.Tick``; some break a check, and are put like others. record: of a source that
    takes no records, such as one that makes them by rule, the class that it is read as; ``rows``
    then only say how many. once: of a source that brings records as they come, and never again:
    nothing is promised of reading from an offset, nor of where batches end. changes: of a source
    that is continued, functions that make another input of it, by their verb ("made anew", "cut
    back"), given the folder of the test; it then holds more records than before, so that reading on
    is possible. away: likewise, a context in which its server does not answer, or denies reading.
    Raises ConnectorError if it is no source.
    """
    if connector.source is None and connector.continued_source is None:
        raise ConnectorError(f"connector {connector.scheme!r} is no source: it has no such suite")
    subject = SourceSubject(connector, put, record, changes, away)
    rules: list[Rule] = []
    if connector.source is not None:
        rules += source_rules.ALWAYS
        rules += () if once else source_rules.OF_REPLAYED
        rules += source_rules.OF_KNOWN if record is None else ()
    if connector.continued_source is not None:
        rules += inputs_rules.RULES
        rules += inputs_rules.OF_CHANGED if changes else ()
        rules += inputs_rules.OF_AWAY if away is not None else ()
    return _suite("SourceSuite", connector, subject, rules)


def sink_suite(
    connector: Connector,
    place: Place,
    read: ReadBack,
    *,
    plain: bool = False,
    once: bool = True,
    changes: Mapping[str, Callable[[Path], object]] | None = None,
) -> type:
    """Return a class of tests of ``connector`` as a sink that a restart continues.

    place: ``folder -> path``: the target's URI without its scheme; each folder of a test gives
    another. read: ``path -> rows``: the committed rows that readers find, as mappings with ``name``
    and ``number`` at least, of one key the newest last; [] where nothing is yet. plain: try the
    plain use instead. once: False of a sink that records no cut and says so in its promise.
    changes: of a sink that is continued, functions that remove, recreate or alter its output, by
    that verb, given the folder of the test. Raises ConnectorError if it has no such use.
    """
    use = connector.sink if plain else connector.continued_sink
    if use is None:
        raise ConnectorError(f"connector {connector.scheme!r} has no such sink, and no such suite")
    rules: list[Rule] = [*sink_rules.ALWAYS]
    if plain:
        rules += sink_rules.OF_PLAIN
    elif once:
        rules += sink_rules.OF_ONCE
        rules += sink_rules.OF_EPOCHS if use.has_epochs else ()
        rules += sink_rules.OF_CHANGED if changes else ()
    else:
        rules += sink_rules.OF_WEAKER
    subject = SinkSubject(connector, place, read, plain=plain, changes=changes)
    return _suite("SinkSuite", connector, subject, rules)


def _suite(name: str, connector: Connector, subject: Any, rules: Iterable[Rule]) -> type:
    about = f"What {connector.scheme!r} promises."
    tests = {f"test_{rule.__name__}": _test_of(rule, subject) for rule in rules}
    return type(name, (), {"__doc__": about, **tests})


def _test_of(rule: Rule, subject: Any) -> Callable[[Any, Path], None]:
    def test(self: Any, tmp_path: Path) -> None:  # noqa: ARG001 - pytest's
        rule(subject, tmp_path)

    test.__doc__, test.__name__ = rule.__doc__, f"test_{rule.__name__}"
    return test
