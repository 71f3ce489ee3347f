"""Tables of a real PostgreSQL: readers' views while runs are killed and the server is away."""

from __future__ import annotations

import asyncio
import random
import re
import signal
import string
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

import ripple as rp
from ripple.connectors.connector import Part, Writing
from ripple.connectors.contract import Commit
from ripple.connectors.locate import open_sink
from ripple.connectors.postgres.sink import PostgresSink
from ripple.connectors.postgres.sink_opening import (
    continue_table,
    look,
    open_table,
    owners,
    reached,
)
from ripple.connectors.postgres.uri import PostgresUri
from ripple.core.errors import OutputAwayError, OutputError
from tests.cli.processes import RIPPLE, ROOT
from tests.cluster.chaos import append, job_of
from tests.cluster.cluster import Job, ripple
from tests.cluster.settled import settled
from tests.connectors.sinks.result_types import EVENTS, KINDS, pipeline_of
from tests.patience import PATIENCE_S, until
from tests.services.missing import MissingError, skip
from tests.services.postgres import Postgres
from tests.services.proxy import Proxy
from tests.task import kill_nine

pytestmark = pytest.mark.services

TRADES = 60_000


@rp.record(version=1)
class Quote:
    symbol: str
    desk: str
    price: float
    timestamp_ns: rp.Timestamp


PIPELINE = (
    rp.Pipeline("quotes")
    .source("quotes", Quote)
    .partition("by-symbol", key=("symbol", "desk"))
    .fold("last", price=rp.last("price"), all=rp.top_k("price", 2))
    .sink("out", of="last")
)
QUOTES = PIPELINE.plan()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    try:
        server = Postgres(tmp_path_factory.mktemp("postgres") / "server")
    except MissingError as error:
        skip(error)
    with server:
        yield server


OPENED: list[PostgresSink] = []


@pytest.fixture(autouse=True)
def environment(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty database, and where it is."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    with server.connect() as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    yield
    while OPENED:
        OPENED.pop().close()


def changes(*rows: tuple[str, str, int, float | None]) -> pa.RecordBatch:
    """Rows of symbol, desk, op and price."""
    symbols, desks, ops, prices = zip(*rows, strict=True)
    values = [None if price is None else [price, 0.5] for price in prices]
    return pa.record_batch(
        {
            "symbol": pa.array(symbols, pa.string()),
            "desk": pa.array(desks, pa.string()),
            "op": pa.array(ops, pa.int8()),
            "price": pa.array(prices, pa.float64()),
            "all": pa.array(values, pa.list_(pa.float64())),
        }
    )


def at(offset: int) -> Commit:
    return Commit({"quotes": offset}, f"{offset:016x}")


def owned(epoch: int | None = None) -> Writing:
    return Writing(QUOTES, QUOTES.outputs[0], epoch=epoch)


def test_run_comes_after_the_owners_that_the_table_knows_unless_one_is_there() -> None:
    there = sink(epoch=3072)
    there.write(changes(("A", "x", 0, 1.0)), at(1))
    there.commit(at(1))
    with pytest.raises(OutputError, match="another run writes it"):
        look("quotes", owned())
    assert look("quotes", owned(4096)) == owners("quotes", owned()) == 3072
    there.close()
    assert look("quotes", owned()) == 3072
    run = sink()
    assert run.committed == at(1)
    run.write(changes(("A", "x", 0, 2.0)), at(2))
    run.commit(at(2))
    assert owners("quotes", owned()) == 3073
    assert look("elsewhere", owned()) == owners("elsewhere", owned()) == 0
    found = [row for keys in run.shown_keys(["symbol", "desk"]) for row in keys.to_pylist()]
    assert found == [{"symbol": "A", "desk": "x", "op": "set"}]


def sink(place: str = "quotes", epoch: int | None = None, part: Part | None = None) -> PostgresSink:
    OPENED.append(continue_table(place, Writing(QUOTES, QUOTES.outputs[0], epoch=epoch, part=part)))
    return OPENED[-1]


SYMBOL, PRICES = "SELECT symbol FROM quotes", "SELECT symbol, desk, price FROM quotes ORDER BY 1, 2"


def test_the_newest_row_of_each_key_is_there_and_removed_ones_are_not(server: Postgres) -> None:
    one = sink()
    one.write(changes(("A", "", 0, 1.5), ("A", "x", 0, 2.5), ("B", "", 0, 3.5)), at(1))
    assert server.rows("SELECT count(*) FROM quotes") == [(0,)], "seen before the commit"
    one.write(changes(("A", "", 1, -0.0), ("B", "", 2, None)), at(2))
    one.commit(at(2))
    assert server.rows(PRICES) == [("A", "", -0.0), ("A", "x", 2.5)]
    one.write(changes(("A", "x", 2, None), ("A", "", 2, None), ("A", "", 0, 1e300)), at(3))
    one.commit(at(3))
    assert server.rows("SELECT *, price = 1e300 FROM quotes") == [
        ("A", "", 1e300, [1e300, 0.5], True)
    ]
    one.close()
    one.close()
    again = sink()
    assert again.committed == at(3)
    again.write(changes(("C", "", 0, 1.0)), at(4))
    again.close()
    assert sink().committed == at(3)
    assert len(server.rows(SYMBOL)) == 1


HOSTILE = [
    "",
    " ",
    '"',
    'a","b',
    "\\.",
    "a\n\\.\nb",
    "\\N",
    "NULL",
    "\r\n",
    "ü\u2028",
    "set,",
    "\t",
]


def test_any_text_and_any_float_comes_back(server: Postgres) -> None:
    one = sink()
    floats = [5e-324, 1.7976931348623157e308, -0.0, float("inf"), float("-inf"), 0.1, 1 / 3]
    one.write(changes(*((text, text, 0, 1.0) for text in HOSTILE)), at(1))
    one.write(changes(*((f"n{n}", "", 0, value) for n, value in enumerate(floats))), at(2))
    one.write(changes(("nan", "", 0, float("nan"))), at(3))
    one.commit(at(3))
    texts = server.rows("SELECT symbol, desk FROM quotes WHERE symbol = desk")
    assert sorted(texts) == sorted((text, text) for text in HOSTILE)
    found = server.rows("SELECT price FROM quotes WHERE symbol LIKE 'n_' ORDER BY symbol")
    assert [repr(value) for (value,) in found] == [repr(value) for value in floats]
    assert server.rows("SELECT price = 'NaN' FROM quotes WHERE symbol = 'nan'") == [(True,)]


def test_a_text_that_no_table_holds_is_named_and_nothing_is_written(server: Postgres) -> None:
    one = sink()
    one.write(changes(("a\0b", "", 0, 1.0), ("c", "", 0, 1.0)), at(1))
    with pytest.raises(OutputError, match=r"cannot write postgres:quotes: .*0x00"):
        one.commit(at(1))
    assert server.rows(SYMBOL) == []


def test_an_owner_that_was_replaced_changes_nothing_any_more(server: Postgres) -> None:
    old = sink(epoch=3)
    old.write(changes(("A", "", 0, 1.0)), at(1))
    old.commit(at(1))
    new = sink(epoch=4)
    assert new.committed == at(1)
    old.write(changes(("B", "", 0, 1.0)), at(2))
    with pytest.raises(OutputError, match="another run has written it meanwhile"):
        old.commit(at(2))
    with pytest.raises(OutputError, match="0 has a newer owner than this one, of epoch 3"):
        sink(epoch=3)
    new.write(changes(("C", "", 0, 1.0)), at(2))
    new.commit(at(2))
    assert server.rows(f"{SYMBOL} ORDER BY 1") == [("A",), ("C",)]


def test_parts_of_one_table_are_written_each_by_its_owner(server: Postgres) -> None:
    parts = [sink(epoch=5, part=Part(number, 3)) for number in range(3)]
    for number, part in enumerate(parts):
        part.write(changes((f"S{number}", "", 0, 1.0)), at(number + 1))
        part.commit(at(number + 1))
    writings = [Writing(QUOTES, QUOTES.outputs[0], part=Part(number, 3)) for number in range(3)]
    assert [reached("quotes", one) for one in writings] == [at(1), at(2), at(3)]
    assert reached("elsewhere", writings[0]) is None
    assert len(server.rows(SYMBOL)) == 3
    with pytest.raises(OutputError, match="of a pipeline of 3 partitions, and this one has 2"):
        sink(epoch=6, part=Part(0, 2))


def test_two_runs_do_not_write_one_table() -> None:
    one = sink()
    with pytest.raises(OutputError, match="another run writes it"):
        sink()
    one.close()
    sink().close()


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        ("CREATE TABLE quotes (symbol text)", "there is such a table, which no run has made"),
        (
            "ALTER TABLE quotes DROP COLUMN price",
            r"a column 'price' \(double precision\), which is not there",
        ),
        ("ALTER TABLE quotes ALTER price TYPE real", "'price' .*, which is real there"),
        ("DROP TABLE quotes", "the table is gone, and its cut is recorded"),
        ("UPDATE ripple_outputs SET pipeline = 'x'", "it is of output 'out' of pipeline 'x'"),
    ],
)
def test_another_table_is_left_unchanged(server: Postgres, made: str, problem: str) -> None:
    if not made.startswith("CREATE"):
        sink().close()
    with server.connect() as connection:
        connection.execute(made)  # type: ignore[call-overload]  # one of those above
    with pytest.raises(OutputError, match=problem):
        sink()


def test_a_plain_run_writes_a_table_whole_or_leaves_it(server: Postgres) -> None:
    first, second = ({"symbol": name, "desk": "", "price": 1.0, "timestamp_ns": 1} for name in "AB")
    rp.run(PIPELINE, source=[first], sink="postgres:quotes")
    rp.run(PIPELINE, source=[second], sink="postgres:quotes")
    assert server.rows(SYMBOL) == [("B",)]
    given_up = open_sink("postgres:quotes", QUOTES, "out")
    given_up.write(changes(("C", "", 0, 1.0)), at(1))
    given_up.close()
    assert server.rows(SYMBOL) == [("B",)]
    with pytest.raises(OutputError, match="a durable run and a one-shot run"):
        sink()


def test_a_result_of_every_type_comes_back(server: Postgres) -> None:
    pipeline = pipeline_of(**{name: kind.type for name, kind in KINDS.items()})
    for _ in range(2):  # a table that is made, and one that is there
        rp.run(pipeline, source=EVENTS, sink="postgres:results")
        columns = ", ".join(f'"{name}"' for name in KINDS)
        found = server.rows(f"SELECT {columns} FROM results ORDER BY k")
        assert [*zip(*found, strict=True)] == [kind.stored for kind in KINDS.values()]


def test_a_commit_whose_answer_was_lost_is_not_made_twice(server: Postgres) -> None:
    async def lost() -> int:
        async with Proxy(f"127.0.0.1:{server.port}") as proxy:
            host, port = proxy.address.split(":")
            place = f"//ripple@{host}:{port}/market/quotes"
            one = await asyncio.to_thread(sink, place)
            for number in range(1, 7):
                one.write(changes((f"S{number}", "", 0, float(number))), at(number))
                wanted = b"COMMIT" if number % 2 else b"INSERT"
                proxy.lose_replies(1, lambda data, wanted=wanted: wanted in data)
                await asyncio.to_thread(one.commit, at(number))
                assert one.committed == at(number)
            one.close()
            return proxy.lost

    assert asyncio.run(lost()) == 6
    assert server.rows("SELECT symbol, price FROM quotes ORDER BY 1") == [
        (f"S{number}", float(number)) for number in range(1, 7)
    ]
    assert sink().committed == at(6)


def test_a_cut_that_is_too_large_to_be_kept_is_sent_in_parts(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ripple.connectors.postgres.sink.PENDING_BYTES_MAX", 40)
    one = sink()
    rows = [changes(*((f"S{n % 7}", str(k), 0, float(n)) for k in range(3))) for n in range(9)]
    for row in rows:
        one.write(row, at(1))
    assert server.rows(SYMBOL) == []
    one.commit(at(1))
    found = server.rows("SELECT symbol, desk, price FROM quotes ORDER BY 1, 2")
    assert found == [
        (f"S{n}", str(k), n + 7.0 if n < 2 else float(n)) for n in range(7) for k in range(3)
    ]
    for row in rows:
        one.write(row, at(2))
    with server.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name LIKE 'ripple %'"
        )
    with pytest.raises(OutputError, match=r"cannot write postgres:quotes: .*terminat"):
        one.commit(at(2))
    assert sink().committed == at(1)


@pytest.mark.parametrize(
    ("taken", "given", "why"),
    [
        ("REVOKE ALL ON quotes, ripple_outputs FROM teller", "{all}", "permission denied"),
        (
            "REVOKE USAGE ON SCHEMA public FROM teller",
            "{all}",
            "no schema has been selected|denied",
        ),
        (
            "ALTER ROLE teller SET default_transaction_read_only = on",
            "ALTER ROLE teller RESET default_transaction_read_only",
            "read-only transaction",
        ),
    ],
)
def test_rights_that_are_taken_may_come_back(
    server: Postgres, monkeypatch: pytest.MonkeyPatch, taken: str, given: str, why: str
) -> None:
    rights = (
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO teller; GRANT ALL ON SCHEMA public TO teller"
    )

    def run(command: str) -> None:
        with server.connect() as connection:
            connection.execute(command)  # type: ignore[call-overload]  # the test's own text

    sink().close()
    run("DROP ROLE IF EXISTS teller; CREATE ROLE teller LOGIN PASSWORD 'x'; " + rights)
    monkeypatch.setenv("PGUSER", "teller")
    monkeypatch.setenv("PGPASSWORD", "x")
    one = sink()
    one.write(changes(("A", "x", 0, 1.0)), at(1))
    run(taken)
    if "ROLE" in taken:
        run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'teller'")
    with pytest.raises(OutputAwayError, match=why):
        one.commit(at(1))
    run(given.format(all=rights))
    one.commit(at(1))
    assert server.rows("SELECT symbol, price FROM quotes") == [("A", 1.0)]
    one.close()
    run("DROP OWNED BY teller; DROP ROLE teller")


def test_passwords_and_hosts_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutputError, match="with a password in it") as refused:
        PostgresUri.parse("//me:hidden@host/db/t")
    assert "hidden" not in str(refused.value)
    for wrong in ("", "//host/t", "a.b.c", "//ho st", "x" * 64, "//h:port/d/t"):
        with pytest.raises(OutputError, match=r"must be postgres:\[//"):
            PostgresUri.parse(wrong)
    text = "//me@[::1]:5433/db/s.t"
    assert str(PostgresUri.parse(text)) == f"postgres:{text}"
    monkeypatch.setenv("PGPASSWORD", "wrong one")
    with pytest.raises(OutputError, match="password authentication failed") as told:
        sink()
    assert "wrong one" not in str(told.value)


class Run:
    """``ripple run --follow`` into a table, started again whenever it is killed."""

    def __init__(self, folder: Path) -> None:
        self.log, self._state = folder / "said", folder / "checkpoints"
        self.command = [
            *(*RIPPLE, "run", str(kill_nine.PIPELINE), "--source", f"log:{folder / 'trades'}"),
            *("--follow", "--checkpoint-dir", str(self._state), "--batch", "500"),
            *("--sink", "out=postgres:vwaps", "--sink", "total=postgres:totals"),
            *("--checkpoint-interval", "200ms", "--commit-interval", "20ms"),
        ]
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        with self.log.open("a") as said:
            self.process = subprocess.Popen(self.command, cwd=ROOT, stderr=said)

    def end(self, how: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(PATIENCE_S)

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def has_checkpoint(self) -> bool:
        """Whether the next one begins with a checkpoint: a manifest behind the first lists one."""
        return any(int(one.stem) > 1 for one in self._state.glob("*/*/manifest/*.json"))

    @property
    def restored(self) -> int:
        return self.log.read_text().count("restored")


def undisturbed(folder: Path, server: Postgres) -> tuple[object, object]:
    """What a run that nobody disturbs writes of the same trades."""
    ripple(
        *("run", kill_nine.PIPELINE, "--source", f"log:{folder / 'trades'}"),
        *("--sink", "out=postgres:calm_vwaps", "--sink", "total=postgres:calm_totals"),
        *("--checkpoint-dir", folder / "calm"),
    )
    return tables(server, "calm_")


def tables(server: Postgres, prefix: str = "") -> tuple[object, object]:
    return (
        server.rows(f"SELECT * FROM {prefix}vwaps ORDER BY 1, 2"),
        server.rows(f"SELECT * FROM {prefix}totals ORDER BY 1"),
    )


def offset(server: Postgres) -> int:
    """Return how many trades all parts of a table have."""
    try:
        found = server.rows(
            "SELECT coalesce(sum(value::bigint), 0) "
            "FROM ripple_outputs, json_each_text(cut::json) WHERE of_table = 'vwaps'"
        )
    except (psycopg.OperationalError, psycopg.errors.UndefinedTable):
        return 0
    return int(str(found[0][0]))


def test_killed_runs_and_a_killed_server_equal_an_undisturbed_run(
    tmp_path: Path, server: Postgres
) -> None:
    ripple("log", "create", "--schema", "trade", tmp_path / "trades")
    run, chance, kills, server_kills = Run(tmp_path), random.Random(4), 0, 0
    begun_at = 0

    def is_at_work() -> bool:
        """Whether it has begun where the one before was, and has committed since."""
        return run.restored == kills and run.has_checkpoint and offset(server) > begun_at

    try:
        for number in range(10):
            if number % 2:
                until(is_at_work, run.log.read_text)  # a run that begins is less patient
            ripple("log", "append", tmp_path / "trades", f"synthetic:{TRADES // 10}")
            time.sleep(chance.uniform(0.3, 1.0))
            if number % 4 == 3:
                server.kill()
                time.sleep(chance.uniform(0.2, 1.5))
                server.start()
                server_kills += 1
                assert run.is_running, run.log.read_text()
            elif number % 2:
                run.end(signal.SIGKILL)
                begun_at = offset(server)
                run.start()
                kills += 1
        until(lambda: offset(server) == TRADES and run.restored == kills, run.log.read_text)
        assert run.end(signal.SIGTERM) == 0, run.log.read_text()
    finally:
        if run.is_running:
            run.end(signal.SIGKILL)
    assert (kills, server_kills) == (3, 2)
    found = tables(server)
    assert all(found)
    assert found == undisturbed(tmp_path, server)


def cluster_up(job: Job, said: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [
        *(*RIPPLE, "cluster", "up", str(job.pipeline), "--source", f"log:{job.source}"),
        *("--sink", "out=postgres:vwaps", "--dir", str(job.folder), "--workers", "2"),
        *("--free-ports", *more),
    ]
    with said.open("w") as log:
        return subprocess.Popen(command, cwd=ROOT, stderr=log)


def test_a_cluster_of_which_a_worker_is_killed_writes_one_table(
    tmp_path: Path, server: Postgres
) -> None:
    job, said = job_of("windows", tmp_path, 4), tmp_path / "said"
    append(job.source, 4, step=0, batches=7)
    up = cluster_up(job, said)
    try:
        until(lambda: "shows them\n" in said.read_text(), said.read_text)
        (coordinator,) = re.findall(r"--coordinator (\S+)", said.read_text())
        asyncio.run(settled(coordinator, workers=2))
        until(lambda: offset(server) > 0, said.read_text)
        append(job.source, 4, step=1, batches=7)
        subprocess.run(["pkill", "-9", "-P", str(up.pid), "-f", "worker-1"], check=True)
        append(job.source, 4, step=2, batches=1, is_end=True)
        until(lambda: offset(server) == TRADES, said.read_text)
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE_S) == 0, said.read_text()
        up = cluster_up(job, said, "--until-end")
        assert up.wait(PATIENCE_S) == 0, said.read_text()
    except TimeoutError as error:
        error.add_note(said.read_text())
        raise
    finally:
        up.kill()
    assert server.rows("SELECT part, parts FROM ripple_outputs ORDER BY 1") == [
        (number, 4) for number in range(4)
    ]
    calm = ("--sink", "out=postgres:calm_vwaps", "--checkpoint-dir", tmp_path / "calm")
    ripple("run", job.pipeline, "--source", f"log:{job.source}", *calm)
    every = "SELECT * FROM {} ORDER BY 1, 2"
    assert server.rows(every.format("vwaps")) == server.rows(every.format("calm_vwaps"))


def test_a_table_that_changes_while_it_is_written_ends_the_run(server: Postgres) -> None:
    """Nothing is written into another table, nor into columns that hold something else."""
    with closing(sink()) as one:
        one.write(changes(("A", "d", 0, 1.5)), at(1))
        one.commit(at(1))
        with server.connect() as other:
            other.execute("ALTER TABLE quotes RENAME TO quotes_old")
            other.execute("CREATE TABLE quotes (LIKE quotes_old INCLUDING ALL)")
        one.write(changes(("B", "d", 0, 2.5)), at(2))
        with pytest.raises(OutputError, match="another table than the one that was written"):
            one.commit(at(2))
    assert server.rows("SELECT count(*) FROM quotes") == [(0,)]
    with pytest.raises(OutputError, match="remove this one and its rows in ripple_outputs"):
        sink()
    with server.connect() as other:
        other.execute("DROP TABLE quotes")
        other.execute("ALTER TABLE quotes_old RENAME TO quotes")
    with closing(sink()) as one:
        assert one.committed == at(1)
        with server.connect() as other:
            other.execute("ALTER TABLE quotes ALTER price TYPE real")
        one.write(changes(("B", "d", 0, 2.5)), at(2))
        with pytest.raises(OutputError, match=r"a column 'price' .*, which is real there"):
            one.commit(at(2))
    with server.connect() as other:
        other.execute("ALTER TABLE quotes ALTER price TYPE double precision")
    with closing(sink()) as one:
        one.write(changes(("B", "d", 0, 2.5)), at(2))
        one.commit(at(2))
    assert server.rows("SELECT count(*) FROM quotes") == [(2,)]


def test_records_of_runs_before_are_taken(server: Postgres) -> None:
    with closing(sink()) as one:
        one.write(changes(("A", "d", 0, 1.5)), at(1))
        one.commit(at(1))
    with server.connect() as other:
        other.execute("ALTER TABLE ripple_outputs DROP COLUMN relation")
    with closing(sink()) as one:
        assert one.committed == at(1)
    assert server.rows("SELECT relation = 'quotes'::regclass FROM ripple_outputs") == [(True,)]


def test_error_names_what_no_table_takes(server: Postgres) -> None:
    for name in ("ctid", "x" * 64):
        plan = (
            rp.Pipeline("quotes")
            .source("quotes", Quote)
            .partition("by-symbol", key="symbol")
            .fold("last", **{name: rp.last("price")})
            .sink("out")
        ).plan()
        with pytest.raises(OutputError, match=f"no column '{name}'.*call it otherwise"):
            continue_table("quotes", Writing(plan, plan.outputs[0]))
    long = "".join(random.Random(1).choices(string.ascii_letters, k=4000))
    whole = open_table("whole", Writing(QUOTES, QUOTES.outputs[0]))
    for one in sink(), whole:
        one.write(changes(("A", "d", 0, 1.5), (long, "d", 0, 1.5)), at(1))
        with pytest.raises(OutputError, match=f"longest key is '{long[:40]}.*of 40.. bytes.*2,704"):
            one.commit(at(1))
        one.close()
