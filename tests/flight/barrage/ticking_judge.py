"""Run by a Python that has Deephaven's own client in C++: prints a digest of the table per update.

python ticking_judge.py HOST:PORT TABLE [AUTH_TYPE AUTH_TOKEN]
"""

from __future__ import annotations

import os
import sys
import threading

import pyarrow as pa
from pydeephaven import Session
from pydeephaven_ticking.table_listener import TableListener, listen

sys.path.insert(0, os.environ["JUDGE_PATH"])
from rows import digest, plain  # noqa: E402 - what the test compares with

DONE = threading.Event()


class Judge(TableListener):
    def on_update(self, update):
        table = update.update.after_modifies
        rows = table.get_row_sequence()
        if not rows.size:
            print(digest([]), flush=True)
            return
        columns = {
            name: table.get_column_by_name(name, True).get_chunk(rows)
            for name in table.schema.names
        }
        print(digest(plain(pa.table(columns))), flush=True)

    def on_error(self, error):
        print(f"error {error}", flush=True)
        DONE.set()


def main(address, name, auth_type="Anonymous", auth_token=""):
    host, _, port = address.rpartition(":")
    with Session(host, int(port), auth_type, auth_token) as session:
        table = session.open_table(name)
        print("columns " + " ".join(table.schema.names), flush=True)
        handle = listen(table, Judge())
        handle.start()
        threading.Thread(target=lambda: (sys.stdin.read(), DONE.set()), daemon=True).start()
        DONE.wait()
        handle.stop()


main(*sys.argv[1:])
