"""TLS with real certificates."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ripple.world import LiveNetwork, Tls, TlsError
from tests.world.certificates import LiveCertificates
from tests.world.network_contract import echo


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    return LiveCertificates(tmp_path).issue("worker")


async def test_no_error_tells_a_key(tls: Tls, tmp_path: Path) -> None:
    key = Path(tls.key).read_text()
    secret = tmp_path / "with passphrase.key"
    command = ["openssl", "ec", "-in", tls.key, "-out", str(secret), "-aes256", "-passout"]
    subprocess.run([*command, "pass:geheim"], check=True, capture_output=True)
    wrong = [
        replace(tls, certificate=tls.key),
        replace(tls, key=tls.certificate),
        replace(tls, authority=tls.key),
        replace(tls, key=str(secret)),
    ]
    for each in wrong:
        with pytest.raises(TlsError) as caught:
            await LiveNetwork().listen("localhost:0", echo, tls=each)
        assert key.splitlines()[1] not in str(caught.value)
    with pytest.raises(TlsError, match="needs a passphrase"):
        await LiveNetwork().listen("localhost:0", echo, tls=wrong[-1])


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_versions_before_tls_1_3_are_refused(tls: Tls, version: ssl.TLSVersion) -> None:
    async def main() -> None:
        listener = await LiveNetwork().listen("localhost:0", echo, tls=tls)
        port = int(listener.address.rpartition(":")[2])
        context = ssl.create_default_context(cafile=tls.authority)
        context.load_cert_chain(tls.certificate, tls.key)
        context.maximum_version = version
        try:
            _, writer = await asyncio.open_connection("localhost", port, ssl=context)
            assert writer.get_extra_info("ssl_object").version() == "TLSv1.3"
            writer.close()
            await writer.wait_closed()
        finally:
            listener.close()
            await asyncio.sleep(0.05)  # for the other end to see it

    if version == ssl.TLSVersion.TLSv1_3:
        await main()
    else:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await main()
