"""A server of NATS that speaks TLS, asks for a certificate, and wants to know who comes."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from pathlib import Path

import nkeys
import pytest

from ripple.cli.main import main
from ripple.errors import InputError
from ripple.nats.place import NatsPlace
from ripple.nats.places import check
from ripple.nats.session import _options
from tests.services.missing import MissingError, skip
from tests.services.nats_server import Nats

pytestmark = pytest.mark.services

PASSWORD, TOKEN = "the password of quant", "a token of 32 characters or more"
WAYS = {
    "token": {"NATS_TOKEN": TOKEN},
    "user": {"NATS_USER": "quant", "NATS_PASSWORD": PASSWORD},
    "nkey": {"NATS_NKEY": "seed"},
}
WRONG = {
    "token": {"NATS_TOKEN": "another token"},
    "user": {"NATS_USER": "quant", "NATS_PASSWORD": "another password"},
    "nkey": {"NATS_NKEY": "other-seed"},
}


def seed() -> bytes:
    """Return a new seed of a user."""
    pair = nkeys.from_seed(nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER))
    return bytes(pair.seed)


class Secured(Nats):
    """Lets in who shows a certificate, and says who they are in the given way."""

    def __init__(self, folder: Path, certificates: Path, way: str) -> None:
        super().__init__(folder)
        self._certificates, self._way = certificates, way

    def prepare(self) -> None:
        super().prepare()
        own, folder = seed(), self._certificates
        (folder / "seed").write_bytes(own)
        (folder / "other-seed").write_bytes(seed())
        public = nkeys.from_seed(bytearray(own)).public_key.decode()
        who = {
            "token": f'token: "{TOKEN}"',
            "user": f'users: [{{user: quant, password: "{PASSWORD}"}}]',
            "nkey": f"users: [{{nkey: {public}}}]",
        }[self._way]
        files = (
            f'cert_file: "{folder}/worker.crt", key_file: "{folder}/worker.key", '
            f'ca_file: "{folder}/ca.crt", verify: true'
        )
        with (self.folder / "nats.conf").open("a") as config:
            config.write(f"tls {{ {files} }}\nauthorization {{ {who} }}\n")


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


def test_who_is_known_is_let_in_and_nobody_else(
    secured: tuple[str, str], certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way, place = secured

    def told(changed: dict[str, str]) -> str:
        with monkeypatch.context() as patched:
            for name, value in changed.items():
                of_file = name in ("NATS_NKEY", "NATS_CA", "NATS_CERT", "NATS_KEY") and value
                patched.setenv(name, str(certificates / value) if of_file else value)
            with pytest.raises(InputError) as refused:
                check(place)
        said = str(refused.value)
        assert "\n" not in said
        assert said.startswith(f"nats:{place}: ")
        assert not any(secret in said for secret in (PASSWORD, TOKEN, "another"))
        return said

    for name, value in WAYS[way].items():
        monkeypatch.setenv(name, str(certificates / value) if way == "nkey" else value)
    assert check(place).endswith("there is no stream trades yet")
    assert "uthorization" in told(WRONG[way])
    assert "certificate" in told({"NATS_CERT": "", "NATS_KEY": ""})
    assert "certificate" in told({"NATS_CA": ""})
    assert "No such file" in told({"NATS_CA": "absent.crt"})


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NATS_TOKEN", TOKEN)
    monkeypatch.setenv("NATS_PASSWORD", PASSWORD)
    place = NatsPlace.parse("trades")
    assert _options(place)["token"] == TOKEN
    assert TOKEN not in repr(place)
    assert PASSWORD not in repr(place)
    for part in (TOKEN, base64.b64encode(TOKEN.encode()).decode()):
        assert part not in str(place)
