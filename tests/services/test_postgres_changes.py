"""Changes of tables of a real PostgreSQL: the contract, killed servers, errors."""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import subprocess
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql
from psycopg.errors import UndefinedTable

import ripple as rp
from ripple.connectors.connector import Reading
from ripple.connectors.inputs import Inputs, Signal
from ripple.connectors.postgres.inputs import PostgresInputs
from ripple.connectors.postgres.position import Position
from ripple.connectors.postgres.source_opening import check, discover, open_inputs
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.registry import own
from ripple.core.cut import Cut
from ripple.core.errors import InputError
from ripple.core.events import InputWaits
from ripple.model.batch import Batch
from ripple.model.records import checks_of, schema_of
from ripple.task import retrying_inputs
from ripple.task.retrying_inputs import RetryingInputs
from ripple.testing import Tick, source_suite
from ripple.testing.connectors.rows import ticks
from tests.cli.processes import RIPPLE, ROOT
from tests.one_shot import one_shot
from tests.patience import PATIENCE_S, comes, until
from tests.services.missing import MissingError, skip
from tests.services.postgres import Postgres

pytestmark = pytest.mark.services

RUNNING: list[Postgres] = []
TICKS = (
    'number bigint, name text, price float8, size bigint, at_ns bigint, note text, "Odd, one" text'
)


@pytest.fixture(scope="module", autouse=True)
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    try:
        server = Postgres(tmp_path_factory.mktemp("postgres") / "server")
    except MissingError as error:
        skip(error)
    with server, pytest.MonkeyPatch.context() as patched:
        for name, value in server.environment.items():
            patched.setenv(name, value)
        RUNNING.append(server)
        yield server
    RUNNING.clear()


def run(*commands: str) -> None:
    """Each in a transaction of its own."""
    with RUNNING[0].connect() as connection:
        connection.autocommit = True
        for command in commands:
            connection.execute(command)


def make(table: str, columns: str = TICKS, more: str = "") -> None:
    """Make a table whose rows are known whole, its publication and its slot."""
    run(
        f"CREATE TABLE {table} ({columns})",
        f"ALTER TABLE {table} REPLICA IDENTITY FULL",
        f"CREATE PUBLICATION ripple_{table} FOR TABLE {table} {more}",
        f"SELECT pg_create_logical_replication_slot('ripple_{table}', 'pgoutput')",
    )


def named(folder: Path) -> str:
    return f"t{zlib.crc32(str(folder).encode()):08x}"


def insert(table: str, rows: list[dict[str, Any]], *, at_once: int = 7) -> None:
    """Insert rows in transactions of some of them."""
    names = list(rows[0])
    query = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, names)),
        sql.SQL(", ").join(sql.Placeholder() * len(names)),
    )
    with RUNNING[0].connect() as connection:
        for first in range(0, len(rows), at_once):
            connection.cursor().executemany(
                query, [tuple(row.values()) for row in rows[first : first + at_once]]
            )
            connection.commit()


def put(folder: Path, rows: list[dict[str, Any]]) -> str:
    table = named(folder)
    with RUNNING[0].connect() as connection:
        found = connection.execute("SELECT to_regclass(%s)", [table]).fetchone()
    if found == (None,):
        make(table)
    if rows:
        insert(table, rows, at_once=7 if len(rows) < 1000 else 1000)
    return table


def remake(folder: Path) -> None:
    """Let another table have the name, and be told of."""
    table = named(folder)
    run(
        f"ALTER TABLE {table} RENAME TO {table}_old",
        f"CREATE TABLE {table} (LIKE {table}_old INCLUDING ALL)",
        f"ALTER TABLE {table} REPLICA IDENTITY FULL",
        f"ALTER PUBLICATION ripple_{table} ADD TABLE {table}",
    )
    insert(table, list(ticks(100, 150)))


def untell(folder: Path) -> None:
    """Tell nothing of the table for a while."""
    table = named(folder)
    run(f"ALTER PUBLICATION ripple_{table} DROP TABLE {table}")
    insert(table, list(ticks(100, 150)))
    run(f"ALTER PUBLICATION ripple_{table} ADD TABLE {table}")
    insert(table, list(ticks(150, 200)))


def narrow(folder: Path) -> None:
    """Tell of some rows alone."""
    table = named(folder)
    run(f"ALTER PUBLICATION ripple_{table} SET TABLE {table} WHERE (number > 120)")
    insert(table, list(ticks(100, 150)))


def reslot(folder: Path) -> None:
    """Let another slot have the name, made a little later."""
    slot = f"ripple_{named(folder)}"
    run(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
        f"WHERE slot_name = '{slot}'"
    )
    until(
        lambda: RUNNING[0].rows(
            f"SELECT 1 FROM pg_replication_slots WHERE slot_name = '{slot}' AND NOT active"
        )
    )
    run(f"SELECT pg_drop_replication_slot('{slot}')")
    insert(named(folder), list(ticks(100, 110)))
    run(f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    insert(named(folder), list(ticks(110, 150)))


@contextmanager
def killed(folder: Path) -> Iterator[None]:
    RUNNING[0].kill()
    yield
    RUNNING[0].start()


CHANGES = {"made anew": remake, "told otherwise": untell, "filtered": narrow, "reslotted": reslot}

TestPostgresChanges = source_suite(own()["postgres"], put, changes=CHANGES, away=killed)


def reading(record: type, rows: int = 1000, *, follow: bool = False) -> Reading:
    return Reading("rows", RecordShape(schema_of(record), checks_of(record)), rows, follow=follow)


def read(table: str, record: type) -> tuple[list[dict[str, Any]], dict[int, str]]:
    found = one_shot(open_inputs, table, reading(record))
    batches = [one for one in found if isinstance(one, Batch)]
    rows = [row for one in batches for row in one.records.to_pylist()]
    return rows, {bad.offset: bad.reason for one in batches for bad in one.rejected}


@rp.record(version=1)
class Account:
    id: int
    owner: str | None
    cents: int | None
    operation: str
    before_id: int | None
    before_cents: int | None
    committed_ns: rp.Timestamp


def test_inserts_updates_and_deletes_have_the_old_values(tmp_path: Path) -> None:
    table, began_ns = named(tmp_path), time.time_ns()
    make(table, "id int PRIMARY KEY, owner text, cents numeric(12)")
    run(
        f"INSERT INTO {table} VALUES (1, 'a', 100), (2, 'b', 200)",
        f"UPDATE {table} SET cents = 150 WHERE id = 1",
        f"ALTER TABLE {table} REPLICA IDENTITY DEFAULT",
        f"UPDATE {table} SET cents = 160 WHERE id = 1",
        f"UPDATE {table} SET id = 3 WHERE id = 2",
        f"DELETE FROM {table} WHERE id = 3",
        f"BEGIN; INSERT INTO {table} VALUES (9, 'no', 1); ROLLBACK",
        f"TRUNCATE {table}",
    )
    rows, refused = read(table, Account)
    stamps = [row.pop("committed_ns") for row in rows]
    assert [tuple(row.values()) for row in rows] == [
        (1, "a", 100, "insert", None, None),
        (2, "b", 200, "insert", None, None),
        (1, "a", 150, "update", 1, 100),
        (1, "a", 160, "update", 1, None),
        (3, "b", 200, "update", 2, None),
        (3, None, None, "delete", 3, None),
    ]
    assert stamps == sorted(stamps)
    assert began_ns - 1000 < stamps[0] <= stamps[-1] < time.time_ns()  # in whole microseconds
    assert refused == {6: "the table was emptied (TRUNCATE), and its rows are not named"}


@rp.record(version=1)
class Kinds:
    truth: bool
    small: int
    exact: float
    single: float
    words: str
    uuid: str
    doc: str
    at: rp.Timestamp
    day: int
    tags: str


def test_types_come_as_they_are_or_are_refused_one_by_one(tmp_path: Path) -> None:
    table = named(tmp_path)
    make(
        table,
        "truth bool, small int2, exact numeric, single float4, words text, uuid uuid, doc jsonb, "
        "at timestamptz, day date, tags text[]",
    )
    with RUNNING[0].connect() as connection:
        connection.execute("SET TimeZone = 'Asia/Kathmandu'")
        good = (
            "(true, -3, 1e-3, 0.1, E'\\\\x, \"ü\\n', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', "
            "'{\"a\": [1]}', '2024-02-29 12:00:00.25+00', '1970-01-02', '{a,NULL}')"
        )
        for values in (
            good,
            good.replace("1e-3", "'NaN'"),
            good.replace("1e-3", "1e400"),
            good.replace("2024-02-29 12:00:00.25+00", "infinity"),
            good.replace("2024-02-29 12:00:00.25+00", "0044-03-15 12:00:00+00 BC"),
            good.replace("true", "NULL"),
            good.replace("0.1", "'-Infinity'"),
        ):
            connection.execute(f"INSERT INTO {table} VALUES {values}")
    rows, refused = read(table, Kinds)
    assert tuple(rows[0].values()) == (
        *(True, -3, 0.001, 0.1, '\\x, "ü\n', "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        *('{"a": [1]}', 1_709_208_000_250_000_000, 86_400_000_000_000, "{a,NULL}"),
    )
    assert [str(row["exact"]) for row in rows] == ["0.001", "nan", "0.001"]
    assert rows[2]["single"] == float("-inf")
    assert refused == {
        2: "exact is too large for a float",
        3: "at is a time that no nanoseconds hold",
        4: "at is a time that no nanoseconds hold",
        5: "truth is empty",
    }


@rp.record(version=1)
class Note:
    id: int
    body: str


def test_unchanged_long_values_come_with_full_replica_identity(tmp_path: Path) -> None:
    table = named(tmp_path)
    make(table, "id int PRIMARY KEY, seen int, body text", "WITH (publish = 'insert, update')")
    long = "".join(random.Random(1).choices("abcdefgh", k=20_000))
    run(
        f"ALTER TABLE {table} ALTER body SET STORAGE EXTERNAL",
        f"INSERT INTO {table} VALUES (1, 0, '{long}')",
        f"UPDATE {table} SET seen = 1",
        f"ALTER TABLE {table} REPLICA IDENTITY DEFAULT",
        f"UPDATE {table} SET seen = 2",
    )
    rows, refused = read(table, Note)
    assert [row["body"] == long for row in rows] == [True, True]
    assert refused[2].startswith("body is long, stored apart (TOAST) and did not change")


async def test_reading_goes_on_within_a_transaction(tmp_path: Path) -> None:
    table = put(tmp_path, ticks(0, 20))  # seven at once

    async def numbers(inputs: PostgresInputs, offset: int) -> dict[int, list[int]]:
        """What comes from there on, by the offset behind it."""
        cut, found = {"rows": offset}, {}
        while (said := inputs.next(cut)) is not Signal.ENDED:
            if isinstance(said, Signal):
                await inputs.more()
                continue
            cut["rows"] = said[1].next_offset
            found[cut["rows"]] = said[1].records["number"].to_pylist()
        return found

    first = open_inputs(table, reading(Tick, 1))
    await first.open({"rows": 0}, 1)
    whole = await numbers(first, 0)
    known = {offset: await first.identities({"rows": offset}) for offset in range(1, 21)}
    await first.close()
    assert sum(not one["rows"].endswith("+0") for one in known.values()) >= 17
    for offset, identity in known.items():
        again = open_inputs(table, reading(Tick, 1))
        await again.check({"rows": offset}, identity)
        await again.open({"rows": offset}, 1)
        assert await numbers(again, offset) == {
            end: rows for end, rows in whole.items() if end > offset
        }
        await again.close()
    wrong = open_inputs(table, reading(Tick, 1))
    position = Position.parse(known[10]["rows"].split(" ")[2])
    moved = known[10]["rows"].replace(str(position), str(position._replace(lsn=position.lsn - 8)))
    with pytest.raises(InputError, match="does not come again"):
        await wrong.check({"rows": 10}, {"rows": moved})
    await wrong.close()


def test_a_server_that_is_killed_interrupts_no_reader(server: Postgres, tmp_path: Path) -> None:
    table = put(tmp_path, ticks(0, 4000))
    found = []
    for count, batch in enumerate(one_shot(open_inputs, table, reading(Tick, 10))):
        assert isinstance(batch, Batch)
        found += batch.records["number"].to_pylist()
        if count in (3, 150):
            server.kill()
            server.start()
    assert found == [one["number"] for one in ticks(0, 4000) if one["price"] > 0]


PIPELINE = """
import ripple as rp
from ripple.testing import Tick

pipeline = (
    rp.Pipeline("sizes")
    .source("ticks", Tick)
    .partition("by-name", key="name")
    .fold("sizes", number=rp.last("number"), ticks=rp.count())
    .sink("out")
)
"""


def command(folder: Path, table: str, name: str, *more: str) -> list[str]:
    (folder / "sizes.py").write_text(PIPELINE)
    environment = ["env", "-C", str(folder), f"PYTHONPATH={ROOT}"]
    asked = ["run", "sizes.py", "--source", f"postgres:{table}", "--sink", f"{name}.csv"]
    return [*environment, *RIPPLE, *asked, "--checkpoint-dir", name, "--batch", "50", *more]


def ended(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def known(table: str) -> int:
    """How many changes the slot has let go, which it does behind what is known of it."""
    query = (
        "SELECT k.changes, s.confirmed_flush_lsn <= split_part(k.position, '+', 1)::pg_lsn "
        "FROM ripple_slots k JOIN pg_replication_slots s ON s.slot_name = k.slot "
        f"WHERE k.slot = 'ripple_{table}'"
    )
    try:
        found = RUNNING[0].rows(query)
    except UndefinedTable:
        return 0
    assert all(is_behind for _, is_behind in found)
    return int(str(found[0][0])) if found else 0


def test_killed_runs_and_a_killed_server_equal_an_undisturbed_run(
    server: Postgres, tmp_path: Path
) -> None:
    chance = random.Random(7)
    table = put(tmp_path, [])
    run(f"SELECT pg_create_logical_replication_slot('calm_{table}', 'pgoutput')")
    log = (tmp_path / "said").open("w")
    following = command(tmp_path, table, "killed", "--follow", "--checkpoint-interval", "100ms")
    process = subprocess.Popen(following, stderr=log)
    try:
        for number in range(12):
            insert(table, ticks(number * 500, number * 500 + 500))
            time.sleep(chance.uniform(0.1, 1.0))
            if number in (4, 9):
                _until_known(table, known(table) + 1, log.name)  # a run that begins is less patient
                server.kill()
                server.start()
                assert process.poll() is None, Path(log.name).read_text()
            elif number % 2:
                process.send_signal(signal.SIGKILL)
                process.wait(PATIENCE_S)
                process = subprocess.Popen(following, stderr=log)
        _until_known(table, max(5000, known(table) + 1), log.name)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, Path(log.name).read_text()
    finally:
        process.kill()
        log.close()
    last = ended(command(tmp_path, table, "killed"))
    assert last.returncode == 0, last.stderr
    names = [f"POSTGRES_SLOT=calm_{table}", f"POSTGRES_PUBLICATION=ripple_{table}"]
    calm = ended(["env", *names, *command(tmp_path, table, "calm")])
    assert calm.returncode == 0, calm.stderr
    assert _newest(tmp_path / "killed.csv") == _newest(tmp_path / "calm.csv")


def _until_known(table: str, changes: int, log: str) -> None:
    """Wait until the slot has let so many changes go."""
    ends = time.monotonic() + PATIENCE_S
    while known(table) < changes:
        insert(table, ticks(0, 3))  # checkpoints rotate
        assert time.monotonic() < ends, Path(log).read_text()
        time.sleep(0.2)


def _newest(path: Path) -> dict[str, str]:
    return {line.split(",")[0]: line for line in path.read_text().splitlines()}


def refused(table: str, record: type = Tick) -> str:
    with pytest.raises(InputError) as told:
        read(table, record)
    assert "\n" not in str(told.value)
    return str(told.value)


def test_errors_of_missing_setup_name_the_way_out(tmp_path: Path) -> None:
    table = named(tmp_path)
    assert refused(table) == f"postgres:{table}: there is no such table"
    run(f"CREATE TABLE {table} ({TICKS})")
    assert f'CREATE PUBLICATION "ripple_{table}" FOR TABLE "{table}"' in refused(table)
    run(f"CREATE PUBLICATION ripple_{table} FOR TABLE {table}")
    assert "has no replica identity" in refused(table)
    run(f"ALTER TABLE {table} ADD PRIMARY KEY (number)")
    assert "a delete has no more than number, and records must have name, price" in refused(table)
    run(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    how = f"SELECT pg_create_logical_replication_slot('ripple_{table}', 'pgoutput')"
    assert how in refused(table)
    assert how in check(table)
    with RUNNING[0].connect("postgres") as elsewhere:
        elsewhere.execute(how)
    assert "is of plugin pgoutput and database postgres, not of" in refused(table)
    with RUNNING[0].connect("postgres") as elsewhere:
        elsewhere.execute(f"SELECT pg_drop_replication_slot('ripple_{table}')")
    run(how)
    assert read(table, Tick) == ([], {})
    assert f"its changes from 0 on are in the slot 'ripple_{table}'" in check(table)
    assert f"postgres:public.{table}" in [one.place for one in discover(table)]
    run(f"ALTER TABLE {table} ALTER price TYPE text")
    assert "a column 'price' of a type that no number comes from" in refused(table)
    run(f"ALTER TABLE {table} DROP price")
    assert "has no column 'price', and the record has a field 'price'" in refused(table)


def test_an_altered_table_ends_the_run_after_earlier_changes(tmp_path: Path) -> None:
    table, out = put(tmp_path, ticks(0, 60)), tmp_path / "out.csv"
    process = subprocess.Popen(
        command(tmp_path, table, "out", "--follow"), stderr=subprocess.PIPE, text=True
    )
    until(lambda: ",59," in out.read_text() if out.exists() else False)
    run(f"ALTER TABLE {table} ADD more int")  # nobody asks for it
    insert(table, ticks(60, 80))
    until(lambda: ",79," in out.read_text())
    insert(table, ticks(80, 90))
    run(f"ALTER TABLE {table} RENAME size TO volume")
    run(f"INSERT INTO {table} (number, name, price) VALUES (90, 'N1', 1.5)")
    said = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 1
    assert f"postgres:{table} has no column 'size' any more after" in said.splitlines()[-1]
    assert ",89," in out.read_text()


def test_slots_without_the_needed_log_are_errors(tmp_path: Path) -> None:
    table = put(tmp_path, ticks(0, 200))
    for first in range(200, 1000, 200):  # a checkpoint each, at the end
        brief = command(tmp_path, table, "out", "--checkpoint-interval", "1h")
        assert ended(brief).returncode == 0
        insert(table, ticks(first, first + 200))
    assert known(table) == 400, "the oldest of three checkpoints"
    fresh = ended(command(tmp_path, table, "fresh"))
    assert fresh.returncode == 0, "a new pipeline begins where the slot does"
    run(
        f"SELECT pg_replication_slot_advance('ripple_{table}', pg_current_wal_lsn())",
    )
    again = ended(command(tmp_path, table, "out"))
    assert again.returncode == 1
    assert "another client has read from it, or it is another one" in again.stderr
    run(f"SELECT pg_drop_replication_slot('ripple_{table}')")
    gone = ended(command(tmp_path, table, "out"))
    assert "is gone, and with it the changes since" in gone.stderr
    assert gone.stderr.count("\n") == 1, gone.stderr


def test_an_invalidated_slot_is_an_error(tmp_path: Path) -> None:
    table = put(tmp_path, ticks(0, 10))
    run("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'", "SELECT pg_reload_conf()")
    try:
        for _ in range(6):
            run(
                "SELECT pg_switch_wal()",
                "CREATE TABLE IF NOT EXISTS filler (n int)",
                "INSERT INTO filler SELECT 1 FROM generate_series(1, 1000)",
                "CHECKPOINT",
            )
        assert "is lost: the server has removed what it had not sent" in refused(table)
    finally:
        run("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")


async def test_one_slot_has_one_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripple.connectors.buffered_input.DELAYS_S", (0.1, 0.1))
    table = put(tmp_path, ticks(0, 10))

    async def begun(inputs: PostgresInputs) -> None:
        await inputs.open({"rows": 0}, 10)
        while inputs.next({"rows": 0}) is Signal.WAITING:
            await inputs.more()

    first = open_inputs(table, reading(Tick, follow=True))
    second = open_inputs(table, reading(Tick, follow=True))
    try:
        await begun(first)
        with pytest.raises(InputError, match="is active for PID"):
            await begun(second)
    finally:
        await first.close()
        await second.close()


async def test_a_quiet_table_does_not_hold_the_log_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment_bytes = 1 << 19
    monkeypatch.setattr("ripple.connectors.postgres.inputs.SPARE_BYTES", 2 * segment_bytes)
    monkeypatch.setattr("ripple.connectors.postgres.inputs.SEGMENT_BYTES", segment_bytes)
    monkeypatch.setattr("ripple.connectors.postgres.inputs.REST_S", 0.1)
    monkeypatch.setattr("ripple.connectors.postgres.stream.STATUS_S", 0.1)
    table = put(tmp_path, ticks(0, 30))

    async def goes_along() -> None:
        """Return once less than a segment is kept: it goes along while ``busy`` is written, too."""
        (end,) = RUNNING[0].rows("SELECT pg_current_wal_lsn()")[0]
        end_lsn = Position.parse(str(end)).lsn
        query = f"SELECT position FROM ripple_slots WHERE slot = 'ripple_{table}'"

        def is_near() -> bool:
            (at,) = RUNNING[0].rows(query)[0]
            return known(table) == 30 and end_lsn - Position.parse(str(at)).lsn < segment_bytes

        await comes(is_near)

    inputs = open_inputs(table, reading(Tick, 10, follow=True))
    try:
        await inputs.open({"rows": 0}, 10)
        kept: list[tuple[Cut, dict[str, str]]] = []
        for offset in (0, 10, 20):
            while inputs.next({"rows": offset}) is Signal.WAITING:
                await inputs.more()
            cut = {"rows": offset + 10}
            kept.insert(0, (cut, await inputs.identities(cut)))
        inputs.stored(kept)
        await comes(lambda: known(table) >= 10)
        await asyncio.sleep(0.5)
        assert known(table) == 10, "behind the oldest of them"
        await asyncio.to_thread(run, "CREATE TABLE busy AS SELECT generate_series(1, 50000)")
        await goes_along()
        await inputs.close()
        inputs = open_inputs(table, reading(Tick, 10, follow=True))
        await inputs.check(*kept[0])
        inputs.stored(kept)
        await inputs.open(kept[0][0], 10)
        await asyncio.to_thread(run, "INSERT INTO busy SELECT generate_series(1, 50000)")
        await goes_along()
    finally:
        await inputs.close()
    insert(table, ticks(30, 33))
    rows, *_ = await asyncio.to_thread(read, table, Tick)
    assert [row["number"] for row in rows] == [30, 32]


def test_a_role_that_may_do_little_else_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = put(tmp_path, ticks(0, 20))
    run(f"CREATE ROLE {table} LOGIN REPLICATION PASSWORD 'x'")
    monkeypatch.setenv("PGUSER", table)
    monkeypatch.setenv("PGPASSWORD", "x")
    made = "CREATE TABLE IF NOT EXISTS ripple_slots (slot text PRIMARY KEY, position text, "
    run(f"{made} changes bigint)")
    assert refused(table).endswith(": permission denied for table ripple_slots")
    run(f"GRANT SELECT, INSERT, UPDATE ON ripple_slots TO {table}")
    assert len(read(table, Tick)[0]) == 19
    assert ended(command(tmp_path, table, "out")).returncode == 0
    assert known(table) == 20


def test_secrets_and_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="with a password in it") as told:
        open_inputs("//me:hidden@host/db/t", reading(Tick))
    assert "hidden" not in str(told.value)
    monkeypatch.setenv("POSTGRES_SLOT", 'x"; DROP')
    with pytest.raises(InputError, match="POSTGRES_SLOT"):
        open_inputs("t", reading(Tick))
    monkeypatch.delenv("POSTGRES_SLOT")
    monkeypatch.setenv("PGPASSWORD", "wrong one")
    with pytest.raises(InputError, match="password authentication failed") as told:
        read("t", Tick)
    assert "wrong one" not in str(told.value)


async def read_up_to(inputs: Inputs, cut: dict[str, int], end: int) -> None:
    """Take batches until so many changes are behind the cut."""
    while cut["rows"] < end:
        found = inputs.next(cut)
        if isinstance(found, tuple):
            cut["rows"] = found[1].next_offset
        elif found is Signal.ENDED:
            break
        else:
            await inputs.more()


def test_a_server_that_has_lost_its_end_is_refused_whatever_came_since(
    server: Postgres, tmp_path: Path
) -> None:
    table, data = put(tmp_path, list(ticks(0, 100))), server.folder / "data"
    server.stop()
    shutil.copytree(data, tmp_path / "copy")
    server.start()
    insert(table, list(ticks(100, 200)))

    async def read_all() -> dict[str, str]:
        inputs, cut = open_inputs(table, reading(Tick)), {"rows": 0}
        await inputs.open(cut, 1000)
        await read_up_to(inputs, cut, 200)
        known = await inputs.identities(cut)
        await inputs.check(cut, known)  # nothing has happened yet
        await inputs.close()
        return known

    known = asyncio.run(read_all())
    server.stop()
    shutil.rmtree(data)
    shutil.copytree(tmp_path / "copy", data)
    server.start()
    insert(table, list(ticks(500, 800)), at_once=1)

    async def refused() -> None:
        with pytest.raises(InputError, match=r"does not come again.*Make a new slot"):
            await open_inputs(table, reading(Tick)).check({"rows": 200}, known)

    asyncio.run(refused())


async def test_a_reader_that_follows_lets_a_server_shut_down(
    server: Postgres, tmp_path: Path
) -> None:
    table = put(tmp_path, list(ticks(0, 20)))

    inputs, cut = RetryingInputs(open_inputs(table, reading(Tick, follow=True))), {"rows": 0}
    await inputs.open(cut, 10)
    reader = asyncio.create_task(read_up_to(inputs, cut, 40))
    await comes(lambda: cut["rows"] == 20)
    stored = dict(cut)
    inputs.stored([(stored, await inputs.identities(stored))])
    await asyncio.to_thread(server.stop)  # which waits until it has ended
    await asyncio.to_thread(server.start)
    await asyncio.to_thread(insert, table, list(ticks(20, 40)))
    await reader
    await inputs.close()


KICK = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
RIGHTS = {
    "ALTER ROLE {} PASSWORD 'other'": "ALTER ROLE {} PASSWORD 'x'",
    "ALTER ROLE {} NOREPLICATION": "ALTER ROLE {} REPLICATION",
    "REVOKE USAGE ON SCHEMA s{} FROM {}": "GRANT USAGE ON SCHEMA s{} TO {}",
}


async def test_rights_that_are_taken_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = named(tmp_path)
    table = f"s{role}.{role}"
    run(
        f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD 'x'",
        f"CREATE SCHEMA s{role}",
        f"GRANT USAGE, CREATE ON SCHEMA s{role} TO {role}",
        f"CREATE TABLE {table} ({TICKS})",
        f"ALTER TABLE {table} REPLICA IDENTITY FULL",
        f"CREATE PUBLICATION ripple_s{role}_{role} FOR TABLE {table}",
        f"SELECT pg_create_logical_replication_slot('ripple_s{role}_{role}', 'pgoutput')",
    )
    monkeypatch.setenv("PGUSER", role)
    monkeypatch.setenv("PGPASSWORD", "x")

    def add(count: int) -> None:
        number = 10 * count
        run(
            f"INSERT INTO {table} (number, name, price, size, at_ns) "
            f"SELECT i, 'a', 1.0, 1, i FROM generate_series({number}, {number + 9}) i"
        )

    monkeypatch.setattr(retrying_inputs, "EMIT_FIRST_S", 0.0)
    inputs, cut = RetryingInputs(open_inputs(table, reading(Tick, follow=True))), {"rows": 0}
    waits: list[str] = []

    def emit(event: object) -> None:
        if isinstance(event, InputWaits):
            waits.append(event.error)

    inputs.emit = emit
    await asyncio.to_thread(add, 0)
    await inputs.open(cut, 10)
    reader = asyncio.create_task(read_up_to(inputs, cut, 10 * len(RIGHTS) + 10))
    for count, (taken, given) in enumerate(RIGHTS.items(), 1):
        await comes(lambda count=count: cut["rows"] == 10 * count)
        kick = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"
        told = len(waits)
        await asyncio.to_thread(run, taken.format(role, role), kick)
        await comes(lambda told=told: len(waits) > told or reader.done())
        await asyncio.to_thread(run, given.format(role, role))
        await asyncio.to_thread(add, count)
    async with asyncio.timeout(PATIENCE_S):
        await reader
    await inputs.close()
    assert "password authentication failed" in waits[0]
    assert "permission denied" in waits[-1]


async def test_table_that_goes_while_nothing_comes_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = put(tmp_path, list(ticks(0, 20)))

    monkeypatch.setattr("ripple.connectors.postgres.inputs.LOOK_S", 0.0)
    monkeypatch.setattr("ripple.connectors.postgres.inputs.REST_S", 0.1)
    inputs, cut = open_inputs(table, reading(Tick, follow=True)), {"rows": 0}
    await inputs.open(cut, 10)
    await read_up_to(inputs, cut, 20)
    run(f"DROP TABLE {table}")
    with pytest.raises(InputError, match="there is no such table"):
        async with asyncio.timeout(PATIENCE_S):
            await read_up_to(inputs, cut, 21)
    await inputs.close()
