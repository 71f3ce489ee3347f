"""Secrets in the wrong place do not reach the log."""

from __future__ import annotations

import time

import pytest

from ripple.cli.lib.exits import exit_code
from ripple.cli.main import main as ripple
from ripple.control.secrets import hider
from ripple.core.errors import InputError
from worker.__main__ import main as worker

HUSH = "hush-hush-hush-hush"


@pytest.mark.parametrize(
    "place",
    [
        f"redis://:{HUSH}@host:6379/s",
        f"kafka:user:{HUSH}@host:9092/t",
        f"'user:{HUSH}@host:9092' is not the address of a broker",
        f"kafka:user:{HUSH}@host/t",
        f"kafka:user:{HUSH}@[::1]:9092/t",
        f"cannot read through:t.toml,kafka:user:{HUSH}@a,user:{HUSH}@b,user:{HUSH}@c/t: no port",
        f"nats://user:{HUSH}@a,user:{HUSH}@b/t",
        f"postgres://user:{HUSH}/{HUSH}@host/db/t",
        f"delta:s3://key:{HUSH}@bucket/t",
        f"ws://host/feed?symbol=A&apiKey={HUSH}",
        f"postgres://host/db/t?password={HUSH}: connection failed",
        f"postgres://host/db/t?pwd={HUSH}&sslmode=require",
        f"https://account.blob.example/t.csv?sv=1&sig={HUSH}",
        f"cannot read nats://{HUSH}@host:4222/t: refused",
        f"connection to 'host=h user=u password={HUSH} dbname=d' failed",
        f"Client(host='h', api_key='{HUSH}')",
        f"refused, aws_secret={HUSH}, token={HUSH}",
        f"Authorization: Bearer {HUSH}",
    ],
)
def test_a_secret_in_a_place_is_not_shown(place: str) -> None:
    assert hider({})(place) == place.replace(f"{HUSH}/{HUSH}", HUSH).replace(HUSH, "***")


def test_a_token_before_each_of_several_hosts_is_not_shown() -> None:
    place = f"nats://{HUSH}@a:4222,{HUSH}@b,{HUSH}@c:4222/t@x"
    assert hider({})(place) == "nats://***@c:4222/t@x"


@pytest.mark.parametrize(
    "text",
    [
        "csv:data@x.csv: line 3",
        "csv:2024-01-01T10:00@x.csv",
        "kafka:host:9092/t?format=avro",
        "kafka:a:9092,b:9092/t@x",
        "nats://a:4222,b:4222/t@x",
        "nats://[::1]:4222/t@x",
        "postgres://user@host/db/t?signal=1",
        '{"source": "nats://host:4222/t", "by": "me@host"}',
        "s3://bucket/a",
        "k@host:1",
        "a:1",
        "token_file=/etc/token, passwords: 3, Bearer of news",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert hider({})(text) == text


@pytest.mark.parametrize(
    "part", ["x", "a.", "a:", "@a,", "://a:", "nats://", "nats://a@a,", "token", "token="]
)
def test_a_long_word_takes_time_as_it_is_long(part: str) -> None:
    def took_s(times: int) -> float:
        began_s = time.process_time()
        hider({})(part * times)
        return time.process_time() - began_s

    took_s(10)
    assert took_s(60_000) < 5  # the square of it is 20 s


@pytest.mark.parametrize("name", ["WS_AUTHORIZATION", "OTEL_EXPORTER_OTLP_HEADERS", "X_API_KEY"])
def test_secrets_of_the_environment_are_known_by_the_names_of_their_variables(name: str) -> None:
    assert hider({name: HUSH})(f"it says {HUSH}") == "it says ***"


def test_errors_of_commands_have_none(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise InputError(f"cannot read redis://:{HUSH}@host/s")

    assert exit_code("ripple", fail) == 1
    assert capfd.readouterr().err == "ripple: cannot read redis://:***@host/s\n"


PLACE = f"redis://user:{HUSH}@host:6379/s"


@pytest.mark.parametrize(
    "command",
    [
        ["config", "show", "worker", "--", "--source", PLACE, "--sink", PLACE],
        ["connector", "check", f"csv:./none?password={HUSH}"],
        ["connector", "check", f"csv:./none?password={HUSH}", "--format", "json"],
    ],
)
def test_commands_print_none(command: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert ripple(command) == 0
    shown = capfd.readouterr()
    assert "***" in shown.out
    assert HUSH not in shown.out + shown.err


def test_effective_settings_have_none(capfd: pytest.CaptureFixture[str]) -> None:
    settings = ["--store", "s", "--coordinator", "localhost:1", "--insecure"]
    where = ["--pipeline", "p.py", "--source", PLACE, "--sink", "log:out/topic"]
    assert worker([*settings, *where, "--check-config"]) == 0
    shown = capfd.readouterr().out
    assert 'source = "redis://user:***@host:6379/s"  # --source' in shown
    assert HUSH not in shown
