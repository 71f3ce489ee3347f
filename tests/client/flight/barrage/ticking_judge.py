"""Run by a Python that has Deephaven's client in C++: what it shows after each update.

python ticking_judge.py SESSION TABLE [rows]: SESSION as JSON, of what ``Session`` takes, PEM files
by name. Prints a digest of all rows per update, or the rows themselves.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pyarrow as pa
from pydeephaven import Session
from pydeephaven_ticking.table_listener import TableListener, listen

sys.path.insert(0, str(Path(__file__).parent))
from rows import digest, plain  # what the test compares with

OVER = threading.Event()


def say(what):
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


class Judge(TableListener):
    def on_update(self, update):
        table = update.update.after_modifies
        rows = table.get_row_sequence()
        columns = {
            name: table.get_column_by_name(name, True).get_chunk(rows) if rows.size else []
            for name in table.schema.names
        }
        found = plain(pa.table(columns)) if rows.size else []
        say(json.dumps([list(columns), found]) if "rows" in sys.argv else digest(found))

    def on_error(self, error):
        say(f"error {error}")
        OVER.set()


def main(given, name, *_):
    settings = json.loads(given)
    for pem in ("tls_root_certs", "client_cert_chain", "client_private_key"):
        if pem in settings:
            settings[pem] = Path(settings[pem]).read_bytes()
    with Session(**settings) as session:
        table = session.open_table(name)
        say(f"tables {' '.join(session.tables)}")
        if "rows" in sys.argv:
            say(f"now {table.to_arrow().num_rows}")
        handle = listen(table, Judge())
        handle.start()
        threading.Thread(target=lambda: (sys.stdin.read(), OVER.set()), daemon=True).start()
        OVER.wait()
        handle.stop()


try:
    main(*sys.argv[1:])
except Exception as error:
    say(" ".join(f"error {error!r} {error.__cause__!r}".split()))
