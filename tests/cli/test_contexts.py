"""Clusters by name: which one is asked, and that nothing of one is shown to another."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from ripple.cli.lib import client_options, contexts
from ripple.cli.lib.contexts import Context, Contexts
from ripple.cli.main import main
from ripple.core.errors import InputError


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = [f"RIPPLE_{name.upper()}" for name in contexts.FILES]
    for name in (client_options.VARIABLE, *files, contexts.CONTEXT_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "new" / "contexts.toml"
    monkeypatch.setenv(contexts.FILE_VARIABLE, str(path))
    return path


def asked(*flags: str) -> Context:
    parser = argparse.ArgumentParser()
    client_options.add_coordinator(parser)
    return client_options.target_context(parser.parse_args(flags))


def test_precedence_of_flags_variables_and_contexts(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked() == Context("localhost:9200")
    (tmp_path / "token").write_text("hushhush" * 5)
    token, other = str(tmp_path / "token"), str(tmp_path / "other")
    made = ("--coordinator", "localhost:1,localhost", "--token-file", token)
    assert main(["config", "context", "set", "prod", *made]) == 0
    assert main(["config", "context", "set", "dev", "--coordinator", "localhost:2"]) == 0
    prod, dev = Context("localhost:1,localhost:9200", token_file=token), Context("localhost:2")
    assert (asked(), asked("--context", "dev")) == (prod, dev)
    assert asked("--tls-key", "k").tls_key == "k"
    monkeypatch.setenv("RIPPLE_TOKEN_FILE", other)
    assert asked() == prod
    # A cluster that is named gets nothing of a context, and a context nothing of variables.
    assert asked("--coordinator", "localhost:3") == Context("localhost:3", token_file=other)
    monkeypatch.setenv("RIPPLE_TLS_KEY", "key")
    assert asked("--coordinator", "localhost:3").tls_key == "key"
    assert asked("--coordinator", "localhost:3", "--tls-key", "k").tls_key == "k"
    assert asked() == prod
    monkeypatch.setenv(contexts.CONTEXT_VARIABLE, "dev")
    assert asked() == dev
    monkeypatch.setenv(client_options.VARIABLE, "localhost:4")
    assert asked().coordinator == "localhost:4"
    assert asked("--context", "prod") == prod
    with pytest.raises(InputError, match="name two clusters"):
        asked("--context", "prod", "--coordinator", "localhost:3")
    with pytest.raises(InputError, match="no context 'prdo'; there are dev, prod"):
        asked("--context", "prdo")
    capsys.readouterr()
    assert main(["config", "context", "use", "dev", "--json"]) == 0
    told = capsys.readouterr().out
    assert [one["current"] for one in json.loads(told)["contexts"]] == [True, False]
    assert "hushhush" not in told + file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert main(["config", "context", "delete", "dev"]) == 0
    assert contexts.read(file) == Contexts({"prod": prod})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = [", "Invalid value"),
        ("other = 1", "'other'"),
        ("[context.a]\ntoken = 'hush'\ncoordinator = 'b'", "unknown field 'token'"),
        ("[context.a]\ntoken_file = 'b'", "has no coordinator"),
        ("[context]\na = 1", "not a table"),
        ("current = 1", "current is a name"),
    ],
)
def test_a_file_that_is_wrong_is_named(file: Path, text: str, problem: str) -> None:
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(InputError, match=problem) as told:
        asked()
    assert str(file) in str(told.value)
    assert asked("--coordinator", "localhost:1") == Context("localhost:1")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["set", "a b", "--coordinator", "localhost:1"], "invalid name"),
        (["set", "a"], "needs --coordinator"),
        (["set", "a", "--coordinator", "elsewhere:1"], "not on this machine"),
        (["set", "a", "--coordinator", "localhost", "--token-file", "nothere"], "there is no file"),
        (["use", "a"], "no context 'a'"),
    ],
)
def test_context_that_cannot_be_kept_is_refused(
    file: Path, arguments: list[str], problem: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "context", *arguments]) == 1
    assert problem in capfd.readouterr().err
    assert not file.exists()


def test_a_file_says_what_was_kept() -> None:
    kept = Contexts({}).having("a.b", Context('c"\\:1', tls_key="ü/k")).having("z", Context("d"))
    assert Contexts.of(kept.text()) == kept
    assert kept.current == "a.b"
