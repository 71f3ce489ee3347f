"""Tokens come from a file that is read again, or from an issuer, and are used while valid."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ripple.connectors.kafka import tokens as tokens_module
from ripple.connectors.kafka.settings import Security, SettingsError, TokenSource, security_given
from ripple.connectors.kafka.tokens import TokenError, Tokens
from tests.connectors.kafka.issuer import Issuer

GIVEN = {
    "RIPPLE_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
    "RIPPLE_KAFKA_SASL_MECHANISM": "OAUTHBEARER",
}


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as issuer:
        threading.Thread(target=issuer.serve_forever, daemon=True).start()
        yield issuer
        issuer.shutdown()


def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    tokens = Tokens(TokenSource(file=str(file)))
    assert tokens.token() == "first"
    file.write_text("second\n")
    assert tokens.token() == "second"
    file.write_text("\n")
    with pytest.raises(TokenError, match="holds no token"):
        tokens.token()


def test_an_issued_token_is_used_for_four_fifths_of_its_time(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(tokens_module.time, "monotonic", lambda: now[0])
    tokens = Tokens(TokenSource("", issuer.url, "id", "s3cret/", "kafka"))
    assert [tokens.token(), tokens.token()] == ["token-1", "token-1"]
    assert issuer.asked == [{"grant_type": ["client_credentials"], "scope": ["kafka"]}]
    now[0] += 79.0
    assert tokens.token() == "token-1"
    now[0] += 2.0
    assert tokens.token() == "token-2"
    issuer.answer = {"error": "busy"}
    now[0] += 98.0
    assert tokens.token() == "token-2", "it is good for a second yet, and one more perhaps"
    now[0] += 2.0
    with pytest.raises(TokenError, match="without a token"):
        tokens.token()


def test_error_of_an_issuer_shows_no_secret(issuer: Issuer) -> None:
    tokens = Tokens(TokenSource("", issuer.url, "id", "guessed"))
    with pytest.raises(TokenError, match="HTTP 401") as told:
        tokens.token()
    assert "guessed" not in str(told.value)
    issuer.answer = {"token": "x"}
    with pytest.raises(TokenError, match="answers without a token"):
        Tokens(TokenSource("", issuer.url, "id", "s3cret/")).token()


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"RIPPLE_KAFKA_SASL_TOKEN_URL": "https://x/token"},
        {"RIPPLE_KAFKA_SASL_TOKEN_URL": "https://x/token", "RIPPLE_KAFKA_SASL_TOKEN_FILE": "t"},
    ],
)
def test_a_source_of_tokens_is_needed(given: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="OAUTHBEARER needs kafka_sasl_token_file"):
        security_given({**GIVEN, **given})


def test_secrets_are_in_no_text_of_settings() -> None:
    given = {
        **GIVEN,
        "RIPPLE_KAFKA_SASL_TOKEN_URL": "https://x/token",
        "RIPPLE_KAFKA_SASL_CLIENT_ID": "id",
        "RIPPLE_KAFKA_SASL_CLIENT_SECRET": "s3cret",
    }
    found = security_given(given)
    assert found.tokens == TokenSource("", "https://x/token", "id", "s3cret")
    assert "s3cret" not in repr(found)
    assert isinstance(found, Security)
