"""Run by a Python that has Deephaven's server: its client in Java follows a table in several views.

python jvm_judge.py HOST:PORT TABLE: reads the views as a line of JSON, and then ``snapshot`` as
often as one is wanted; writes a line of JSON per view and update: a digest of its rows in order.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

from deephaven_server import Server

SERVER = Server(
    port=0,
    jvm_args=[
        "-Xmx1g",
        "-XX:TieredStopAtLevel=1",
        "-Dprocess.info.system-info.enabled=false",
        "-DPeriodicUpdateGraph.targetCycleDurationMillis=20",
    ],
)
SERVER.start()

import jpy  # noqa: E402 - once there is a JVM
from deephaven import arrow, table_listener  # noqa: E402
from deephaven.barrage import barrage_session  # noqa: E402
from deephaven.table import Table  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
from rows import digest_in_order, plain  # noqa: E402 - what the test compares with

SPEC = jpy.get_type("io.deephaven.qst.table.TableSpec")
ROWS = jpy.get_type("io.deephaven.engine.rowset.RowSetFactory")
BITS = jpy.get_type("java.util.BitSet")
OPTIONS = jpy.get_type("io.deephaven.extensions.barrage.BarrageSubscriptionOptions")
LOCK = threading.Lock()


def say(**what):
    with LOCK:
        os.write(FROM_JUDGE, (json.dumps(what) + "\n").encode())


FROM_JUDGE = os.dup(1)


def rows_of(table, columns):
    seen = arrow.to_arrow(table.view(columns) if columns else table)
    return digest_in_order(plain(seen))


def follow(session, ticket, *, name, view, columns, reverse, width):
    options = OPTIONS.builder().useDeephavenNulls(True).minUpdateIntervalMs(20).build()
    bits = None
    if columns:
        bits = BITS(width)
        for column in columns:
            bits.set(column)
    rows = None if view is None else ROWS.fromRange(*view)
    subscription = session.j_barrage_session.subscribe(SPEC.ticket(ticket), options)
    table = Table(subscription.partialTable(rows, bits, reverse).get())
    names = [table.columns[n].name for n in columns] if columns else None
    shown = table.view(names) if names else table

    def changed(update, is_replay):
        say(view=name, digest=rows_of(shown, None))

    say(view=name, digest=rows_of(shown, None))
    return shown, table_listener.listen(shown, changed)


def main(address, name):
    host, _, port = address.rpartition(":")
    kept = []
    with barrage_session(host, int(port), "Anonymous") as session:
        ticket = b"s/" + name.encode()
        kept += [follow(session, ticket, **view) for view in json.loads(sys.stdin.readline())]
        say(view="ready", digest="")
        for line in sys.stdin:
            if line.strip() == "snapshot":
                say(view="snapshot", digest=rows_of(session.snapshot(ticket), None))
        for _, handle in kept:
            handle.stop()


try:
    main(*sys.argv[1:])
except Exception as error:
    say(view="error", digest=repr(error))
os._exit(0)
