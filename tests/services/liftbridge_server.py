"""A real server of Liftbridge, with a server of NATS: its protocol is spoken by hand."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import grpc

from ripple.connectors.nats.envelope import Message, message_of
from tests.deploy.tools import liftbridge
from tests.patience import PATIENCE_S
from tests.services.server import Server, free_port

CONFIG = """
listen: 127.0.0.1:{port}
data.dir: data
nats.servers: ["nats://{nats}"]
clustering: {{raft.bootstrap.seed: true}}
"""
# As StartPosition of a SubscribeRequest, and as its StopPosition.
EARLIEST, LATEST = b"\x18\x02", b"\x40\x02"


class Liftbridge(Server):
    """A server of one, which stores what is sent to subjects of NATS."""

    def __init__(self, folder: Path, nats: str) -> None:
        super().__init__(folder)
        self._program, self._nats = liftbridge(), nats
        self.port = free_port()

    def prepare(self) -> None:
        """Begin without streams."""
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        (self.folder / "config.yaml").write_text(CONFIG.format(port=self.port, nats=self._nats))

    def command(self) -> list[str]:
        """Return what to run, on this machine alone."""
        return [str(self._program), "--config", "config.yaml"]

    def answers(self) -> bool:
        """Ask whether it leads, by making a stream."""
        return self.create("ready") or self.create("ready")

    def create(self, subject: str) -> bool:
        """Make a stream of a subject, called like it; return whether it is there."""
        name = subject.encode()
        asked = b"".join(bytes((tag, len(name))) + name for tag in (0x0A, 0x12))
        with self._channel() as channel:
            try:
                channel.unary_unary("/proto.API/CreateStream")(asked, timeout=5)
            except grpc.RpcError as error:
                return error.code() is grpc.StatusCode.ALREADY_EXISTS
        return True

    def messages(self, stream: str) -> list[Message]:
        """Return what a stream has stored until now."""
        name, found = stream.encode(), list[Message]()
        with self._channel() as channel:
            asked = b"\x0a" + bytes((len(name),)) + name + EARLIEST + LATEST
            coming = channel.unary_stream("/proto.API/Subscribe")(asked, timeout=PATIENCE_S)
            try:
                for one in coming:
                    found.append(message_of(one))
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:  # there is no more
                    raise
        return found[1:]  # the first says that it has begun

    def _channel(self) -> Any:
        return grpc.insecure_channel(f"127.0.0.1:{self.port}")
