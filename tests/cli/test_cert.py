"""``ripple cert``: an authority and certificates in a folder."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from ripple.cli.main import main


def openssl(*arguments: str) -> str:
    return subprocess.run(
        ["openssl", *arguments], capture_output=True, text=True, check=True
    ).stdout


def test_a_cluster_gets_an_authority_and_certificates_that_nobody_else_can_read(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "certs"
    assert main(["cert", "--dir", str(folder)]) == 0
    names = ("ca", "coordinator", "gateway", "worker")
    made = [f"{name}.{ending}" for name in names for ending in ("crt", "key")]
    assert sorted(path.name for path in folder.iterdir()) == made
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    for name in names[1:]:
        certificate = str(folder / f"{name}.crt")
        said = openssl("verify", "-CAfile", str(folder / "ca.crt"), "-x509_strict", certificate)
        assert said.endswith("OK\n")
        text = openssl("x509", "-in", certificate, "-noout", "-text")
        assert f"DNS:{name}, DNS:localhost, IP Address:127.0.0.1" in text
        assert "CA:FALSE" in text


def test_more_names_come_from_the_same_authority(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    given = ["cert", "--dir", str(folder), "--name"]
    assert main([*given, "worker-0", "--host", "node-7", "--host", "10.1.2.3"]) == 0
    authority = (folder / "ca.crt").read_bytes()
    assert main([*given, "worker-1"]) == 0
    assert (folder / "ca.crt").read_bytes() == authority
    for name in ("worker-0", "worker-1"):
        openssl("verify", "-CAfile", str(folder / "ca.crt"), str(folder / f"{name}.crt"))
    text = openssl("x509", "-in", str(folder / "worker-0.crt"), "-noout", "-text")
    assert "DNS:node-7" in text
    assert "IP Address:10.1.2.3" in text


def test_all_names_below_one_are_certified_at_once_for_pods_that_come_and_go(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "certs"
    below = "*.ripple-worker.ripple.svc.cluster.local"
    assert main(["cert", "--dir", str(folder), "--name", "worker", "--host", below]) == 0
    certificate = str(folder / "worker.crt")
    for host, matches in (("ripple-worker-7", True), ("a.b", False)):
        name = below.replace("*", host)
        said = openssl("x509", "-in", certificate, "-noout", "-checkhost", name)
        assert ("does match" in said) is matches, said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "ca.crt exists"),
        (["--name", "worker"], "worker.crt exists"),
        (["--name", "ca"], "choose another one"),
        (["--name", "a/../b"], "invalid host name"),
        (["--name", "x", "--host", "a,DNS:evil"], "invalid host name"),
        (["--name", "x", "--host", "a.*.b"], "invalid host name"),
        (["--name", "x", "--host", "a..b"], "invalid host name"),
        (["--name", "a..b"], "invalid host name"),
        (["--name", "x" * 64], "invalid host name"),
        (["--name", "x", "--host", "*.10.0.0.1"], "an IP address has no wildcard"),
        (["--name", "x", "--host", "a." * 130 + "b"], "more than 253"),
        (["--client"], "--client needs --name, and no --host"),
        (["--name", "x", "--days", "398"], "not from 1 to 397"),
        (["--name", "*.x"], "invalid host name"),
        (["--name", "x\nbasicConstraints=CA:true"], "invalid host name"),
    ],
)
def test_nothing_is_overwritten_and_no_strange_name_is_taken(
    arguments: list[str], said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "certs"
    assert main(["cert", "--dir", str(folder)]) == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["cert", "--dir", str(folder), *arguments]) == 1
    assert said in capfd.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_without_openssl_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["cert", "--dir", str(tmp_path / "certs")]) == 1
    assert "openssl is not installed" in capfd.readouterr().err
    assert list((tmp_path / "certs").iterdir()) == []


def test_a_clients_certificate_is_no_servers_and_one_of_long_names_is(tmp_path: Path) -> None:
    own = tmp_path / "rita.csr"
    own.write_text("somebody's own")
    long = ".".join(["ripple-coordinator", "x" * 40, "svc.cluster.local"])
    assert main(["cert", "--dir", str(tmp_path), "--name", "rita", "--client", "--days", "2"]) == 0
    assert main(["cert", "--dir", str(tmp_path), "--name", "node", "--host", long]) == 0
    assert own.read_text() == "somebody's own"
    rita, node = (_shown(tmp_path / f"{name}.crt") for name in ("rita", "node"))
    assert "TLS Web Client Authentication" in rita
    assert "TLS Web Server Authentication" not in rita
    assert "localhost" not in rita
    assert f"DNS:{long}" in node
    assert not list(tmp_path.glob(".*.csr"))


def test_failed_certificate_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["cert", "--dir", str(tmp_path), "--name", "a"]) == 0
    (tmp_path / "ca.key").rename(tmp_path / "elsewhere")
    assert main(["cert", "--dir", str(tmp_path), "--name", "b"]) == 1
    assert "openssl x509 failed" in capfd.readouterr().err
    assert not list(tmp_path.glob("b.*"))
    (tmp_path / "elsewhere").rename(tmp_path / "ca.key")
    assert main(["cert", "--dir", str(tmp_path), "--name", "b"]) == 0


def _shown(certificate: Path) -> str:
    return openssl("x509", "-in", str(certificate), "-noout", "-text")
