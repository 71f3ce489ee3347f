"""Nobody answers at an address: exit code 2, whichever client has found it out."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from aiokafka.errors import KafkaConnectionError
from psycopg import OperationalError

from ripple.cli.lib.exits import EXIT_FAILURE, EXIT_UNREACHABLE, exit_code
from ripple.cli.lib.silence import is_silence
from ripple.connectors.formats import registry
from ripple.core.errors import InputError, SchemaError
from ripple.storage.store.opening import store_to_read
from tests.cli.processes import ROOT


@pytest.fixture
def nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return f"127.0.0.1:{closed.getsockname()[1]}"


@pytest.mark.parametrize(
    "place", ["kafka:{}/t", "redis://{}/s", "nats://{}/s", "ws://{}/f", "postgres://{}/d/t"]
)
def test_a_client_that_gets_no_answer_ends_with_two(
    place: str, nobody: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from ripple.cli.main import main

    assert main(["connector", "check", place.format(nobody)]) == EXIT_UNREACHABLE


def test_a_plan_whose_output_does_not_answer_ends_with_two(
    nobody: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from ripple.cli.main import main

    file = str(ROOT / "examples/vwap.py")
    store = ("--checkpoint-dir", str(tmp_path))
    for place in (f"kafka:{nobody}/t", f"postgres://{nobody}/d/t"):
        assert main(["plan", file, *store, "--sink", place]) == EXIT_UNREACHABLE
        assert "is not known" in capsys.readouterr().out
    (tmp_path / "own.csv").write_text("mine\n")
    assert main(["plan", file, *store, "--sink", str(tmp_path / "own.csv")]) == EXIT_FAILURE


def test_a_store_that_does_not_answer_ends_with_two(
    nobody: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in (("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "y")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RIPPLE_S3_ENDPOINT", f"http://{nobody}")
    monkeypatch.setenv("RIPPLE_S3_REGION", "us-east-1")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    async def ask() -> None:
        async with store_to_read("s3://bucket/p") as store:
            await store.list("")

    def work() -> int:
        asyncio.run(ask())
        return 0

    assert exit_code("ripple", work) == EXIT_UNREACHABLE


def caused(error: Exception, by: BaseException) -> Callable[[], int]:
    def work() -> int:
        raise error from by

    return work


@pytest.mark.parametrize(
    ("work", "code"),
    [
        (caused(InputError("x"), ConnectionResetError()), EXIT_UNREACHABLE),
        (caused(InputError("x"), socket.gaierror(-2, "unknown")), EXIT_UNREACHABLE),
        (caused(InputError("x"), ssl.SSLCertVerificationError("unknown")), EXIT_FAILURE),
        (caused(InputError("x"), PermissionError(13, "denied")), EXIT_FAILURE),
        (caused(SchemaError("x"), ConnectionResetError()), 3),
    ],
)
def test_unexpected_answer_is_a_failure(work: Callable[[], int], code: int) -> None:
    assert exit_code("ripple", work) == code


@pytest.mark.parametrize(
    ("said", "is_silent"),
    [
        ("kafka_sasl_token_file: cannot read token: [Errno 2] No such file", False),
        ("no token for Kafka from http://i/: HTTP 401 Unauthorized", False),
        ("no token for Kafka from http://i/: it answers without a token", False),
        ("no token for Kafka from http://i/: [Errno 111] Connection refused", True),
    ],
)
def test_a_token_that_was_refused_is_no_silence_of_brokers(said: str, is_silent: bool) -> None:
    error = InputError(f"cannot reach Kafka: b:9092: {said}")
    error.__cause__ = KafkaConnectionError("Unable to bootstrap")
    assert is_silence(error) is is_silent


def test_a_registry_that_is_away_is_silent(nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FIRST_PATIENCE_S", 0.0)
    with pytest.raises(registry.RegistryError, match="does not answer") as away:
        registry.Registry(f"http://{nobody}").latest("trades-value")
    assert is_silence(away.value)


def test_password_request_counts_as_an_answer() -> None:
    error = InputError("postgres://h/d/t: connection failed: fe_sendauth: no password supplied")
    error.__cause__ = OperationalError("no password supplied")
    assert not is_silence(error)


def test_a_chain_of_causes_that_never_ends_does() -> None:
    one, other = InputError("one"), InputError("other")
    one.__cause__, other.__cause__ = other, one
    assert not is_silence(one)
