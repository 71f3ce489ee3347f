"""A server of NATS with TLS, client certificates and users."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nkeys
import pytest

from ripple.cli.main import main
from ripple.connectors.nats import session
from ripple.connectors.nats.opening import check
from ripple.connectors.nats.session import _options
from ripple.connectors.nats.uri import NatsUri
from ripple.core.errors import InputError
from tests.patience import PATIENCE_S
from tests.services.missing import MissingError, skip
from tests.services.nats_server import Nats

pytestmark = pytest.mark.services

PASSWORD, TOKEN = "the password of quant", "a token of 32 characters or more"
WAYS = {
    "token": {"NATS_TOKEN": TOKEN},
    "user": {"NATS_USER": "quant", "NATS_PASSWORD": PASSWORD},
    "nkey": {"NATS_NKEY": "seed"},
    "creds": {"NATS_CREDS": "user.creds"},
}
WRONG = {
    "token": {"NATS_TOKEN": "another token"},
    "user": {"NATS_USER": "quant", "NATS_PASSWORD": "another password"},
    "nkey": {"NATS_NKEY": "other-seed"},
    "creds": {"NATS_CREDS": "stranger.creds"},
}
OPEN = {"pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1}
OF_FILES = ("NATS_NKEY", "NATS_CREDS", "NATS_CA", "NATS_CERT", "NATS_KEY")


def seed(kind: int = nkeys.PREFIX_BYTE_USER) -> bytes:
    """Return a new seed, of a user unless it is said of what."""
    return bytes(nkeys.encode_seed(secrets.token_bytes(32), kind))


def public(of: bytes) -> str:
    """Return the public key of a seed."""
    name: str = nkeys.from_seed(bytearray(of)).public_key.decode()
    return name


def token_of(issuer: bytes, subject: str, about: dict[str, Any]) -> str:
    """Return a JWT as the tool nsc makes them."""

    def packed(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    def said(what: Any) -> str:
        return packed(json.dumps(what).encode())

    claims = {"iat": 1_700_000_000, "iss": public(issuer), "sub": subject, "name": "quant"}
    number = hashlib.sha256(json.dumps(claims).encode()).digest()
    claims |= {"jti": base64.b32encode(number).decode().rstrip("="), "nats": about}
    text = f"{said({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{said(claims)}"
    return f"{text}.{packed(nkeys.from_seed(bytearray(issuer)).sign(text.encode()))}"


def operated(folder: Path) -> str:
    """Write credentials of a user, and of a stranger; return what makes a server know one."""
    operator, account = seed(nkeys.PREFIX_BYTE_OPERATOR), seed(nkeys.PREFIX_BYTE_ACCOUNT)
    for name, issuer in (("user", account), ("stranger", seed(nkeys.PREFIX_BYTE_ACCOUNT))):
        own = seed()
        token = token_of(issuer, public(own), {**OPEN, "type": "user", "version": 2})
        (folder / f"{name}.creds").write_text(
            f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{own.decode()}\n------END USER NKEY SEED------\n"
        )
    limits = {"conn": -1, "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1}
    jetstream = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
    whole = {"limits": {**limits, **jetstream}, "type": "account", "version": 2}
    of_system = {**whole, "limits": limits}
    system = seed(nkeys.PREFIX_BYTE_ACCOUNT)
    known = {
        public(one): token_of(operator, public(one), about)
        for one, about in ((account, whole), (system, of_system))
    }
    of_operator = token_of(operator, public(operator), {"type": "operator", "version": 2})
    preloaded = "\n".join(f"{name}: {token}" for name, token in known.items())
    return (
        f"operator: {of_operator}\nsystem_account: {public(system)}\n"
        f"resolver: MEMORY\nresolver_preload: {{\n{preloaded}\n}}\n"
    )


class Secured(Nats):
    """Lets in who shows a certificate, and says who they are in the given way."""

    def __init__(self, folder: Path, certificates: Path, way: str) -> None:
        super().__init__(folder)
        self._certificates, self._way = certificates, way

    def prepare(self) -> None:
        super().prepare()
        own, folder = seed(), self._certificates
        operator = operated(folder)
        (folder / "seed").write_bytes(own)
        (folder / "other-seed").write_bytes(seed())
        who = {
            "token": f'authorization {{ token: "{TOKEN}" }}',
            "user": f'authorization {{ users: [{{user: quant, password: "{PASSWORD}"}}] }}',
            "nkey": f"authorization {{ users: [{{nkey: {public(own)}}}] }}",
            "creds": operator,
        }[self._way]
        files = (
            f'cert_file: "{folder}/worker.crt", key_file: "{folder}/worker.key", '
            f'ca_file: "{folder}/ca.crt", verify: true'
        )
        with (self.folder / "nats.conf").open("a") as config:
            config.write(f"tls {{ {files} }}\n{who}\n")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    assert main(["cert", "--dir", str(folder)]) == 0
    return folder


@pytest.fixture(params=WAYS)
def secured(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    certificates: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[str, str]]:
    try:
        server = Secured(tmp_path / "server", certificates, request.param)
    except MissingError as error:
        skip(error)
    with server:
        monkeypatch.setenv("NATS_TLS", "true")
        monkeypatch.setenv("NATS_CA", str(certificates / "ca.crt"))
        monkeypatch.setenv("NATS_CERT", str(certificates / "coordinator.crt"))
        monkeypatch.setenv("NATS_KEY", str(certificates / "coordinator.key"))
        yield request.param, f"//{server.address}/trades"


def test_only_known_users_are_accepted(
    secured: tuple[str, str], certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way, place = secured

    def told(changed: dict[str, str]) -> str:
        with monkeypatch.context() as patched:
            for name, value in changed.items():
                is_file = name in OF_FILES and value
                patched.setenv(name, str(certificates / value) if is_file else value)
            with pytest.raises(InputError) as refused:
                check(place)
        said = str(refused.value)
        assert "\n" not in said
        assert said.startswith(f"nats:{place}: ")
        assert not any(secret in said for secret in (PASSWORD, TOKEN, "another"))
        return said

    for name, value in WAYS[way].items():
        monkeypatch.setenv(name, str(certificates / value) if name in OF_FILES else value)
    assert check(place).endswith("there is no stream trades yet")
    assert "uthorization" in told(WRONG[way])
    if way != "token":  # of certificates it is the same, whoever shows what
        return
    for changed in ({"NATS_CERT": "", "NATS_KEY": ""}, {"NATS_CA": ""}):
        for answer_s in (3.0, 30.0, PATIENCE_S):  # it takes all of that, and a handshake its own
            monkeypatch.setattr(session, "ANSWER_S", answer_s)
            said = told(changed)
            if "certificate" in said:
                break
        assert "certificate" in said
    assert "No such file" in told({"NATS_CA": "absent.crt"})


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NATS_TOKEN", TOKEN)
    monkeypatch.setenv("NATS_PASSWORD", PASSWORD)
    place = NatsUri.parse("trades")
    assert _options(place)["token"] == TOKEN
    assert TOKEN not in repr(place)
    assert PASSWORD not in repr(place)
    for part in (TOKEN, base64.b64encode(TOKEN.encode()).decode()):
        assert part not in str(place)
