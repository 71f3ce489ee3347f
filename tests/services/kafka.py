"""Real Kafka brokers: one, several that are one cluster, one with TLS and passwords."""

from __future__ import annotations

import socket
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.services.jars import Jars, JavaServer
from tests.services.server import free_port

# 4.3 and 4.4 lose markers of transactions when a broker that is alone is killed (KAFKA-20734).
KAFKA = Jars(
    "kafka",
    ("org.apache.kafka:kafka_2.13:4.2.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.5"),
    "2860c538e76a3ff038484b2d7665ccf7c28b274161de39cfe9e8996d8428ecdc",
    without=("org.apache.kafka:kafka-tools-api",),  # was never published
)
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
JAVA = [
    *("-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    "-Dlog4j2.configurationFile=log4j2.xml",
]
LOG4J = """<Configuration><Appenders><Console name="out">
  <PatternLayout pattern="%d{ISO8601} %p %m (%c{1})%n%throwable"/></Console></Appenders>
  <Loggers><Root level="INFO"><AppenderRef ref="out"/></Root></Loggers></Configuration>
"""
COMMON = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "data",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    # One that was killed is replaced, or taken back, in three seconds and not in nine.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "log.cleaner.backoff.ms": "200",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}

TOKENS = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="broker";'
    ),
}
API_VERSIONS, METADATA = 18, 3
NO_TOPICS = struct.pack(">i", 0)
CALL_S = 2.0


@dataclass(frozen=True)
class Secure:
    """TLS and SCRAM-SHA-256, at a listener of their own: ``Broker.secure_bootstrap``.

    key, certificate: PEM files, the key in PKCS #8. authority: of clients' certificates, which are
    then required.
    """

    key: Path
    certificate: Path
    user: str
    password: str
    authority: Path | None = None


@dataclass(frozen=True)
class _Node:
    """One of those that make up a cluster. ports: of clients, of controllers, of secure clients."""

    number: int
    ports: tuple[int, int, int]


@dataclass
class _Group:
    nodes: list[_Node] = field(default_factory=list)

    def voters(self) -> str:
        return ",".join(f"{node.number}@127.0.0.1:{node.ports[1]}" for node in self.nodes)


def _group(size: int) -> _Group:
    ports = [(free_port(), free_port(), free_port()) for _ in range(size)]
    return _Group([_Node(number, three) for number, three in enumerate(ports, 1)])


class Broker(JavaServer):
    """A broker that is its own controller; topics are made by clients.

    settings: more of Kafka's, or others. takes_tokens: ``secure_bootstrap`` wants a token of OAuth,
    which need not be signed. Raises MissingError where Kafka cannot be had.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        secure: Secure | None = None,
        *,
        takes_tokens: bool = False,
        node: _Node | None = None,
        group: _Group | None = None,
    ) -> None:
        super().__init__(folder, KAFKA, "Kafka")
        self._group = group or _group(1)
        self._node = node or self._group.nodes[0]
        self._settings = dict(settings or {})
        self._secure = secure
        self._takes_tokens = takes_tokens

    @property
    def bootstrap(self) -> str:
        """Return the address for clients."""
        return f"127.0.0.1:{self._node.ports[0]}"

    @property
    def secure_bootstrap(self) -> str:
        """Return the address for clients with TLS and a password."""
        return f"127.0.0.1:{self._node.ports[2]}"

    def prepare(self) -> None:
        """Write the configuration and make the data folder."""
        (self.folder / "log4j2.xml").write_text(LOG4J)
        lines = [f"{name}={value}" for name, value in self._properties().items()]
        (self.folder / "server.properties").write_text("\n".join([*lines, ""]))
        scram = []
        if self._secure:
            user = f"SCRAM-SHA-256=[name={self._secure.user},password={self._secure.password}]"
            scram = ["--add-scram", user]
        given = ["format", "-t", CLUSTER_ID, "-c", "server.properties", *scram]
        ended = subprocess.run(
            self._run("kafka.tools.StorageTool", *given),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr

    def command(self) -> list[str]:
        """Return what to run."""
        return self._run("kafka.Kafka", "server.properties")

    def _run(self, *what: str) -> list[str]:
        return [self._java, *JAVA, self.archive(), "-cp", self._classpath, *what]

    def answers(self) -> bool:
        """Ask for what the broker can do, and whether it knows of all others."""
        if _call(self._node.ports[0], API_VERSIONS, 0, b"")[:2] != b"\0\0":
            return False
        (known,) = struct.unpack_from(">i", _call(self._node.ports[0], METADATA, 1, NO_TOPICS))
        return bool(known == len(self._group.nodes))

    def _properties(self) -> dict[str, str]:
        clients, controllers, secure = self._node.ports
        copies = min(3, len(self._group.nodes))
        listeners = [f"PLAINTEXT://127.0.0.1:{clients}", f"CONTROLLER://127.0.0.1:{controllers}"]
        found = {
            **COMMON,
            # Records have times of years ago, for which the broker would remove them.
            "log.retention.ms": "-1",
            "node.id": str(self._node.number),
            "controller.quorum.voters": self._group.voters(),
            "listener.security.protocol.map": (
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,"
                "SASL_PLAINTEXT:SASL_PLAINTEXT"
            ),
            "default.replication.factor": str(copies),
            "min.insync.replicas": str(max(1, copies - 1)),
            "offsets.topic.replication.factor": str(copies),
            "transaction.state.log.replication.factor": str(copies),
            "transaction.state.log.min.isr": str(max(1, copies - 1)),
        }
        if self._secure:
            listeners.append(f"SASL_SSL://127.0.0.1:{secure}")
            found |= _secured(self._secure)
        if self._takes_tokens:
            listeners.append(f"SASL_PLAINTEXT://127.0.0.1:{secure}")
            found |= TOKENS
        return {**found, "listeners": ",".join(listeners), **self._settings}


def _secured(secure: Secure) -> dict[str, str]:
    found = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": _pem(secure.key),
        "ssl.keystore.certificate.chain": _pem(secure.certificate),
    }
    if secure.authority:
        found |= {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": _pem(secure.authority),
            "listener.name.sasl_ssl.ssl.client.auth": "required",
        }
    return found


def _pem(path: Path) -> str:
    """Return a file as the value of a property that goes on over lines."""
    return " \\\n".join(path.read_text().strip().splitlines())


class Brokers:
    """Brokers that are one cluster: topics with as many copies as there are, at most three.

    One that is killed can be started again: ``brokers.brokers[0].kill()``, ``…start()``.
    """

    def __init__(
        self, folder: Path, count: int = 3, settings: Mapping[str, str] | None = None
    ) -> None:
        group = _group(count)
        self.brokers: Sequence[Broker] = [
            Broker(folder / str(node.number), settings, node=node, group=group)
            for node in group.nodes
        ]

    @property
    def bootstrap(self) -> str:
        """Return the addresses for clients."""
        return ",".join(broker.bootstrap for broker in self.brokers)

    def __enter__(self) -> Self:
        try:
            for broker in self.brokers:  # none answers before it has found the others
                broker.folder.mkdir(parents=True, exist_ok=True)
                broker.prepare()
                broker.launch()
            for broker in self.brokers:
                broker.wait()
        except BaseException:
            self.kill()
            raise
        return self

    def kill(self) -> None:
        """Kill all at once."""
        for broker in self.brokers:
            broker.kill()

    def __exit__(self, *_: object) -> None:
        self.kill()  # told to end one by one, the last ones would wait for the first


def _call(port: int, api: int, version: int, body: bytes) -> bytes:
    """Ask a broker something in its protocol's first form; return the answer."""
    head = struct.pack(">hhih", api, version, 1, -1)
    with socket.create_connection(("127.0.0.1", port), CALL_S) as link:
        link.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        with link.makefile("rb") as answer:
            (length,) = struct.unpack(">i", _exactly(answer.read(4), 4))
            return _exactly(answer.read(length), length)[4:]


def _exactly(data: bytes, length: int) -> bytes:
    if len(data) != length:
        raise ConnectionError(f"{len(data)} bytes instead of {length}")
    return data
