"""URIs of topics, and the settings of connections."""

from __future__ import annotations

import re

import pytest

from ripple.connectors.kafka.settings import Security, security_given
from ripple.connectors.kafka.uri import KafkaUri
from ripple.core.errors import InputError
from ripple.core.setting import SettingsError

SCRAM = {
    "RIPPLE_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
    "RIPPLE_KAFKA_SASL_MECHANISM": "scram-sha-256",
    "RIPPLE_KAFKA_SASL_USERNAME": "u",
    "RIPPLE_KAFKA_SASL_PASSWORD": "hidden",
}


def test_uri_has_brokers_a_topic_and_options() -> None:
    place = KafkaUri.parse("kafka:a:9092,[::1]:1,b/trades.v1?format=csv&key=symbol")
    assert place == ("a:9092,[::1]:1,b", "trades.v1", {"format": "csv", "key": "symbol"})
    assert str(place) == "kafka:a:9092,[::1]:1,b/trades.v1"


def test_brokers_of_a_uri_default_to_the_environment(monkeypatch) -> None:
    with pytest.raises(InputError, match=r"names no broker, as in kafka:127.0.0.1:9092/trades"):
        KafkaUri.parse("kafka:trades")
    monkeypatch.setenv("RIPPLE_KAFKA_BROKERS", "a:1,b:2")
    assert KafkaUri.parse("trades") == ("a:1,b:2", "trades", {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kafka:", "cannot tell which topic"),
        ("kafka:a:1/", "cannot tell which topic"),
        ("kafka:a:1/two words", "cannot tell which topic"),
        ("kafka:a:1/..", "cannot tell which topic"),
        ("kafka:a:1/trades/2", "as in kafka:a:1/trades?partition=2"),
        ("kafka:a:1,/trades", "'' is not the address of a broker"),
        ("kafka:u:p@a:1/trades", "'***@a:1' is not the address of a broker"),
        ("kafka:u:p@a/trades", "'***@a' is not the address of a broker"),
        ("kafka:a:1/trades?format=csv&format=json", "says format twice"),
        ("kafka:a:1/trades?csv=", None),
    ],
)
def test_invalid_uri_is_rejected(text: str, said: str | None) -> None:
    if said is None:
        assert KafkaUri.parse(text).options == {"csv": ""}
        return
    with pytest.raises(InputError, match=re.escape(said)):
        KafkaUri.parse(text)


def test_security_comes_from_the_environment_and_is_never_shown(tmp_path) -> None:
    found = security_given(SCRAM)
    assert found.arguments.__self__ == Security("SASL_SSL", "SCRAM-SHA-256", "u", "hidden")
    assert "hidden" not in repr(found)
    (tmp_path / "password").write_text("from a file\n")
    by_file = {**SCRAM, "RIPPLE_KAFKA_SASL_PASSWORD_FILE": str(tmp_path / "password")}
    del by_file["RIPPLE_KAFKA_SASL_PASSWORD"]
    assert security_given(by_file).password == "from a file"
    assert security_given({}) == Security()
    assert security_given({}).arguments() == {"security_protocol": "PLAINTEXT"}


def test_security_comes_from_a_file_that_others_read_too(tmp_path) -> None:
    (tmp_path / "ripple.toml").write_text(
        '[worker]\nhost = "127.0.0.1"\n[kafka]\nsecurity_protocol = "SSL"\nca_file = "ca.pem"\n'
    )
    for name in ("RIPPLE_CONFIG", "RIPPLE_KAFKA_CONFIG"):
        found = security_given({name: str(tmp_path / "ripple.toml")})
        assert found == Security("SSL", ca_file="ca.pem")
    (tmp_path / "wrong.toml").write_text('[kafka]\nsasl_pasword = "hidden"\n')
    with pytest.raises(SettingsError, match=r"kafka.sasl_pasword, an unknown setting") as caught:
        security_given({"RIPPLE_CONFIG": str(tmp_path / "wrong.toml")})
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"RIPPLE_KAFKA_SECURITY_PROTOCOL": "TLS"}, "'TLS', not one of PLAINTEXT, SSL"),
        ({**SCRAM, "RIPPLE_KAFKA_SASL_MECHANISM": "MD5"}, "'MD5', not one of PLAIN"),
        ({**SCRAM, "RIPPLE_KAFKA_SASL_USERNAME": ""}, "SASL_SSL needs kafka_sasl_username"),
        ({**SCRAM, "RIPPLE_KAFKA_SECURITY_PROTOCOL": "SSL"}, "SSL, which sends none"),
        ({**SCRAM, "RIPPLE_KAFKA_SASL_PASSWORD_FILE": "x"}, "is given twice"),
        ({"RIPPLE_KAFKA_CONFIG": "/nowhere"}, "cannot read /nowhere: No such file"),
    ],
)
def test_error_names_a_wrong_setting(given: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)) as caught:
        security_given(given)
    assert "hidden" not in str(caught.value)


def test_error_names_an_unusable_certificate(tmp_path) -> None:
    with pytest.raises(SettingsError, match=r"cannot use /nowhere.pem: No such file"):
        Security("SSL", ca_file="/nowhere.pem").arguments()
    (tmp_path / "no.pem").write_text("none")
    with pytest.raises(SettingsError, match=r"cannot use .*no.pem"):
        Security("SSL", ca_file=str(tmp_path / "no.pem")).arguments()
