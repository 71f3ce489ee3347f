"""Flight SQL, asked by the driver of JDBC that tools of Java and their users have."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.client.flight.flights import asked
from tests.patience import PATIENCE_S
from tests.services.cache import needed
from tests.services.jars import Jars
from tests.services.missing import MissingError, skip

pytestmark = pytest.mark.services

DRIVER = Jars(
    "flight-sql-jdbc",
    ("org.apache.arrow:flight-sql-jdbc-driver:18.3.0",),
    "cebbcb27e428a0ab74803812db1611d7483bd7de099eb769a00f280f6d571740",
)
ASK = Path(__file__).parent / "Ask.java"
# Arrow's memory, as its manual says.
OPENS = "--add-opens=java.base/java.nio=ALL-UNNAMED"


def test_a_driver_of_jdbc_finds_tables_and_asks() -> None:
    try:
        needed("javac", "the test of JDBC")
        java, classpath = needed("java", "the test of JDBC"), DRIVER.classpath()
    except MissingError as error:
        skip(error)
    found: list[str] = []

    def ask(address: str) -> None:
        url = address.replace("grpc://", "jdbc:arrow-flight-sql://") + "/?useEncryption=false"
        ended = subprocess.run(
            [
                *(java, OPENS, "-cp", classpath, str(ASK), url),
                "SELECT symbol, trades, vwap FROM vwap ORDER BY symbol",
                'SELECT sum(size) FROM "by-class"',
                "DELETE FROM vwap",
            ],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        found.extend(ended.stdout.splitlines())

    asked(ask)
    *rows, refused = found
    assert rows == [
        "table by-class",
        "table vwap",
        "row A 1 1.5",
        "row B 2 2.5",
        f"row C {2**62} null",
        "row 30",
    ]
    assert refused.startswith("refused ")
    assert refused.endswith("DELETE is not allowed: outputs are read-only; use SELECT")
