"""Addresses, and which of them need TLS."""

from __future__ import annotations

import pytest

from ripple.world import Tls, addresses

TLS = Tls(certificate="a.crt", key="a.key", authority="ca.crt")


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [("a:1", "a", 1), ("10.0.0.1:65535", "10.0.0.1", 65535), ("[::1]:80", "::1", 80)],
)
def test_address_is_taken_apart_and_put_together(address: str, host: str, port: int) -> None:
    assert addresses.parts(address) == (host, port)
    assert addresses.joined(host, port) == address


@pytest.mark.parametrize(
    "address", ["", "a", "a:", ":1", "a:x", "a:-1", "a:65536", "a:\u0661", "[]:1"]
)
def test_text_that_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        addresses.parts(address)


@pytest.mark.parametrize("address", ["localhost:1", "127.0.0.1:1", "127.8.9.10:1", "[::1]:1"])
def test_local_address_needs_no_tls(address: str) -> None:
    addresses.check_secured(address, None)
    addresses.check_secured(address, TLS)


@pytest.mark.parametrize(
    "address",
    ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "worker-0:1", "localhost.example.com:1", "128.0.0.1:1"],
)
def test_remote_address_needs_tls_unless_insecure_is_said(address: str) -> None:
    with pytest.raises(ValueError, match="without TLS") as caught:
        addresses.check_secured(address, None)
    assert address in str(caught.value)
    addresses.check_secured(address, TLS)
    addresses.check_secured(address, None, insecure=True)
