"""The contract of networks with TLS; each form of the network runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

import pytest

from ripple.world import Network, Stream, Tls, TlsError
from tests.run_by import run_by
from tests.world.network_contract import echo, read_all

PLACE = "localhost:0"


class Certificates(Protocol):
    """What issues certificates in some form of the world."""

    def issue(self, name: str, authority: str = "ca") -> Tls:
        """Make files for a name and this machine; the same authority is the same for all."""
        ...

    def replace(self, path: str, by: str) -> None:
        """Put one file in another one's place."""
        ...

    def spoil(self, path: str) -> None:
        """Put nonsense into a file."""
        ...


Main = Callable[[Network, Certificates], Awaitable[Any]]

in_its_world = run_by(lambda contract, main: contract.run(main), "network", "certificates")


class TlsContract:
    """Subclasses say how ``main`` runs in a world with an empty network."""

    def run(self, main: Main) -> None:
        raise NotImplementedError

    @in_its_world
    async def test_stream_carries_bytes_both_ways(
        self, network: Network, certificates: Certificates
    ) -> None:
        server, client = certificates.issue("coordinator"), certificates.issue("worker")
        listener = await network.listen(PLACE, echo, tls=server)
        for named in (client, replace(client, peer="coordinator")):
            stream = await network.connect(listener.address, tls=named)
            sent = bytes(range(256)) * 300
            received = b""
            await stream.write(sent)
            while len(received) < len(sent):
                received += await stream.read(1 << 16)
            assert received == sent
            stream.close()
        listener.close()

    @in_its_world
    async def test_to_finish_is_to_close(
        self, network: Network, certificates: Certificates
    ) -> None:
        heard: list[bytes] = []

        async def serve(stream: Stream) -> None:
            heard.append(await read_all(stream))

        tls = certificates.issue("worker")
        listener = await network.listen(PLACE, serve, tls=tls)
        stream = await network.connect(listener.address, tls=tls)
        await stream.write(b"all of it")
        stream.finish()
        with pytest.raises(ConnectionError):
            await stream.write(b"more")
        await asyncio.sleep(0.3)
        assert heard == [b"all of it"]
        listener.close()

    @in_its_world
    async def test_client_without_certificate_is_not_served(
        self, network: Network, certificates: Certificates
    ) -> None:
        served = Served()
        listener = await network.listen(PLACE, served, tls=certificates.issue("worker"))
        stream = await network.connect(listener.address)
        await stream.write(b"plain")
        await until_broken(stream)
        stream.close()
        assert not served.names
        listener.close()

    @in_its_world
    async def test_listener_without_tls_is_not_connected_to(
        self, network: Network, certificates: Certificates
    ) -> None:
        listener = await network.listen(PLACE, echo)
        with pytest.raises(TlsError, match="does not speak TLS"):
            await network.connect(listener.address, tls=certificates.issue("worker"))
        listener.close()

    @in_its_world
    async def test_certificate_of_an_unknown_authority_is_refused_on_either_side(
        self, network: Network, certificates: Certificates
    ) -> None:
        ours, theirs = certificates.issue("worker"), certificates.issue("worker", "other")
        served = Served()
        listener = await network.listen(PLACE, served, tls=ours)
        with pytest.raises(TlsError, match="certificate does not fit"):
            await network.connect(listener.address, tls=theirs)
        # Believed by who connects, and not by who listens.
        stream = await network.connect(
            listener.address, tls=replace(theirs, authority=ours.authority)
        )
        await until_broken(stream)
        stream.close()
        assert not served.names
        listener.close()

    @in_its_world
    async def test_certificate_for_another_name_is_refused(
        self, network: Network, certificates: Certificates
    ) -> None:
        tls = certificates.issue("worker")
        served = Served()
        listener = await network.listen(PLACE, served, tls=tls)
        with pytest.raises(TlsError, match=r"certificate does not fit.*coordinator"):
            await network.connect(listener.address, tls=replace(tls, peer="coordinator"))
        assert not served.names
        listener.close()

    @in_its_world
    async def test_files_that_do_not_fit_are_named(
        self, network: Network, certificates: Certificates
    ) -> None:
        tls, other = certificates.issue("worker"), certificates.issue("coordinator")
        spoilt = certificates.issue("spoilt")
        certificates.spoil(spoilt.certificate)
        wrong = {
            "absent/x.crt": replace(tls, certificate="absent/x.crt"),
            "absent/x.key": replace(tls, key="absent/x.key"),
            "absent/ca.crt": replace(tls, authority="absent/ca.crt"),
            f"{other.key}.*is not the private key of {tls.certificate}|"
            f"is not the private key of {tls.certificate}.*{other.key}": replace(
                tls, key=other.key
            ),
            spoilt.certificate: replace(tls, certificate=spoilt.certificate),
            "spoilt.crt.*": replace(tls, authority=spoilt.certificate),
        }
        for named, each in wrong.items():
            with pytest.raises(TlsError, match=named):
                await network.listen(PLACE, echo, tls=each)
            with pytest.raises(TlsError, match=named):
                await network.connect("localhost:1", tls=each)

    @in_its_world
    async def test_replaced_files_count_from_the_next_connection_on(
        self, network: Network, certificates: Certificates
    ) -> None:
        before, after = certificates.issue("worker"), certificates.issue("worker", "other")
        shown = certificates.issue("coordinator")
        listener = await network.listen(PLACE, echo, tls=shown)
        old = await network.connect(listener.address, tls=before)
        with pytest.raises(TlsError):
            await network.connect(listener.address, tls=after)
        follows = certificates.issue("coordinator", "other")
        certificates.replace(shown.key, by=follows.key)
        # Half replaced: what fitted together last is gone on with.
        (await network.connect(listener.address, tls=before)).close()
        certificates.replace(shown.certificate, by=follows.certificate)
        certificates.replace(shown.authority, by=follows.authority)
        new = await network.connect(listener.address, tls=after)
        for stream in (old, new):
            await stream.write(b"x")
            assert await stream.read(1) == b"x"
            stream.close()
        with pytest.raises(TlsError):
            await network.connect(listener.address, tls=before)
        listener.close()


class Served:
    """Serves, and remembers whom."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def __call__(self, stream: Stream) -> None:
        self.names.append(stream.peer)


async def until_broken(stream: Stream) -> None:
    try:
        async with asyncio.timeout(20):
            await read_all(stream)
    except ConnectionError:
        pass
