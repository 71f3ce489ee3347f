"""One session of Spark for all tests, with what they replay."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

QUICK = ("--conf", "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1")
"""For commands with executors of their own, whose JVMs are there for seconds."""


@cache
def _session() -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from ripple.spark.session import session

    settings = {
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    return session("local[2]", name="ripple-tests", is_brief=True, **settings)


@pytest.fixture
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark")
    with warnings.catch_warnings():
        # Of Spark itself, about versions of pandas and sockets that it leaves to the collector.
        warnings.simplefilter("ignore")
        yield _session()
