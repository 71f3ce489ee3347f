"""Settings of brokers: TLS and credentials, from the environment and a file, never from a URI."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ripple.core.setting import Alias, Setting, SettingsError
from ripple.core.settings import CONFIG_VARIABLE, Arguments, in_force
from ripple.core.settings_file import read_file

BROKERS_VARIABLE = "RIPPLE_KAFKA_BROKERS"
KAFKA_CONFIG_VARIABLE = "RIPPLE_KAFKA_CONFIG"
SECTION = "kafka"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


def _setting(name: str, help_text: str, default: str = "") -> Setting:
    return Setting(
        name=f"kafka_{name}",
        help=help_text,
        default=default,
        places=(Alias(f"{SECTION}.{name}"),),
    )


SETTINGS = (
    _setting("brokers", "brokers of URIs that name none: HOST:PORT, separated by commas"),
    _setting("security_protocol", f"one of {', '.join(PROTOCOLS)}", "PLAINTEXT"),
    _setting("sasl_mechanism", f"one of {', '.join(MECHANISMS)}", "PLAIN"),
    _setting("sasl_username", "the name that brokers know"),
    _setting("sasl_password", "its password"),
    _setting("sasl_password_file", "a file that holds the password"),
    _setting("sasl_token_file", "OAUTHBEARER: a file with the token, read at each connection"),
    _setting("sasl_token_url", "OAUTHBEARER: issuer of tokens for a client's id and secret"),
    _setting("sasl_client_id", "the client's id there"),
    _setting("sasl_client_secret", "its secret"),
    _setting("sasl_client_secret_file", "a file that holds the secret"),
    _setting("sasl_scope", "the scope that is asked for there"),
    _setting("sasl_token_ca_file", "CA certificates for the issuer; default: the system's"),
    _setting("ca_file", "CA certificates for brokers, as PEM; default: the system's"),
    _setting("cert_file", "this client's certificate, as PEM"),
    _setting("key_file", "its private key, as PEM"),
    _setting("registry_url", "a registry of schemas: http://HOST:PORT or https://HOST[/PATH]"),
    _setting("registry_username", "the name that it knows"),
    _setting("registry_password", "its password"),
    _setting("registry_password_file", "a file that holds the password"),
    _setting("registry_ca_file", "CA certificates for the registry; default: the system's"),
    _setting("registry_cert_file", "this client's certificate there, as PEM"),
    _setting("registry_key_file", "its private key, as PEM"),
)


@dataclass(frozen=True, slots=True)
class TokenSource:
    """The origin of tokens: a file, or an issuer. Its text does not show the secret."""

    file: str = ""
    url: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    ca_file: str = ""

    def context(self) -> ssl.SSLContext | None:
        """Return how TLS is done, if it is. Raises SettingsError for a file that is no good."""
        return _context("the issuer of tokens", self.ca_file) if self.url[:6] == "https:" else None


@dataclass(frozen=True, slots=True)
class Security:
    """How connections are secured. Its text does not show the password."""

    protocol: str = "PLAINTEXT"
    mechanism: str = "PLAIN"
    username: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    tokens: TokenSource | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of aiokafka's clients, except the token provider.

        Raises SettingsError for unusable files.
        """
        found: dict[str, Any] = {"security_protocol": self.protocol}
        if self.protocol.startswith("SASL"):
            found["sasl_mechanism"] = self.mechanism
            if self.tokens is None:
                found |= {
                    "sasl_plain_username": self.username,
                    "sasl_plain_password": self.password,
                }
        if self.protocol.endswith("SSL"):
            found["ssl_context"] = self._context()
        return found

    def _context(self) -> ssl.SSLContext:
        return _context("Kafka", self.ca_file, self.cert_file, self.key_file)


@dataclass(frozen=True, slots=True)
class RegistrySecurity:
    """A registry of schemas: its address and credentials. Its text does not show the password."""

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""

    def context(self) -> ssl.SSLContext | None:
        """Return how TLS is done, if it is. Raises SettingsError for files that are no good."""
        if not self.url.startswith("https:"):
            return None
        return _context("the registry", self.ca_file, self.cert_file, self.key_file)


def _context(whom: str, ca_file: str, cert_file: str = "", key_file: str = "") -> ssl.SSLContext:
    named = ca_file
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
        if cert_file:
            named = f"{cert_file} with {key_file or 'the key in it'}"
            context.load_cert_chain(cert_file, key_file or None)
    except OSError as error:
        why = error.strerror or error
        raise SettingsError(f"TLS to {whom}: cannot use {named}: {why}") from error
    return context


def registry_security(environment: Mapping[str, str] = os.environ) -> RegistrySecurity:
    """Return how the registry is got at, as ``security_given`` does. Raises SettingsError."""
    held = _values(environment)
    values = {
        name.removeprefix("kafka_registry_"): value
        for name, value in held.items()
        if name.startswith("kafka_registry_")
    }
    url = urlsplit(values["url"])
    if not values["url"]:
        raise SettingsError(
            "its format needs a registry of schemas: set RIPPLE_KAFKA_REGISTRY_URL, or "
            "registry_url in the table [kafka]"
        )
    if url.scheme not in ("http", "https") or not url.hostname:
        raise SettingsError("kafka_registry_url must be http://HOST:PORT or https://HOST")
    if url.username or url.password:
        raise SettingsError(
            "kafka_registry_url holds a user's name or password: give kafka_registry_username and "
            "kafka_registry_password (or kafka_registry_password_file)"
        )
    password = _password(values["password"], values["password_file"], "kafka_registry_password")
    return RegistrySecurity(
        values["url"],
        values["username"],
        password,
        values["ca_file"],
        values["cert_file"],
        values["key_file"],
    )


def brokers_given() -> str:
    """Return the brokers of places that name none, "" if there are none. Raises SettingsError."""
    return _values(os.environ)["kafka_brokers"]


def security_given(environment: Mapping[str, str] = os.environ) -> Security:
    """Return the settings of the environment and of its file. Raises SettingsError."""
    values = {name.removeprefix("kafka_"): value for name, value in _values(environment).items()}
    protocol = values["security_protocol"].upper()
    _check_one("security_protocol", protocol, PROTOCOLS)
    given = values["sasl_password"], values["sasl_password_file"]
    password = _password(*given, "kafka_sasl_password")
    mechanism = values["sasl_mechanism"].upper()
    tokens = None
    if protocol.startswith("SASL"):
        _check_one("sasl_mechanism", mechanism, MECHANISMS)
    if protocol.startswith("SASL") and mechanism == "OAUTHBEARER":
        tokens = _token_source(values)
    elif protocol.startswith("SASL"):
        if not values["sasl_username"] or not password:
            raise SettingsError(
                f"kafka_security_protocol {protocol} needs kafka_sasl_username and "
                "kafka_sasl_password (or kafka_sasl_password_file)"
            )
    elif values["sasl_username"] or password:
        raise SettingsError(
            f"a user's name or password for Kafka is given, and kafka_security_protocol is "
            f"{protocol}, which sends none: SASL_SSL does"
        )
    return Security(
        protocol,
        mechanism,
        values["sasl_username"],
        password,
        values["ca_file"],
        values["cert_file"],
        values["key_file"],
        tokens,
    )


def _token_source(values: Mapping[str, str]) -> TokenSource:
    """Return the source of tokens. Raises SettingsError unless just one source is given."""
    given = values["sasl_client_secret"], values["sasl_client_secret_file"]
    secret = _password(*given, "kafka_sasl_client_secret")
    file, url, client = (
        values[f"sasl_{name}"] for name in ("token_file", "token_url", "client_id")
    )
    if bool(file) == bool(url) or (url and not (client and secret)):
        raise SettingsError(
            "kafka_sasl_mechanism OAUTHBEARER needs kafka_sasl_token_file, or kafka_sasl_token_url "
            "with kafka_sasl_client_id and kafka_sasl_client_secret (or "
            "kafka_sasl_client_secret_file)"
        )
    if url and urlsplit(url).scheme not in ("http", "https"):
        raise SettingsError("kafka_sasl_token_url must be https://HOST/PATH (or http)")
    return TokenSource(
        file, url, client, secret, values["sasl_scope"], values["sasl_token_ca_file"]
    )


def _values(environment: Mapping[str, str]) -> dict[str, str]:
    path = environment.get(KAFKA_CONFIG_VARIABLE) or environment.get(CONFIG_VARIABLE)
    file: Mapping[str, Any] = {}
    if path:
        try:
            file = read_file(Path(path).read_bytes(), path)
        except OSError as error:
            raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    others = [name for name in file if name != SECTION]
    found = in_force(SETTINGS, Arguments({}), environment, file, section=SECTION, others=others)
    return {name: str(each.value) for name, each in found.items()}


def _check_one(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise SettingsError(f"kafka_{name} is {value!r}, not one of {', '.join(known)}")


def _password(given: str, path: str, name: str) -> str:
    """Return a password that is given by itself, or as the first line of a file."""
    if not path:
        return given
    if given:
        raise SettingsError(f"{name} is given twice: by itself, and by a file")
    try:
        return Path(path).read_text().split("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{name}_file: cannot read {path}: {error}") from error
