"""The brokers for tests do what a test needs of them."""

from __future__ import annotations

import asyncio
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiokafka
import aiokafka.errors
import pytest
from aiokafka import admin

from tests.patience import PATIENCE_S
from tests.services.cache import kept
from tests.services.certificate import certified
from tests.services.jars import Jars
from tests.services.kafka import Broker, Brokers, Secure
from tests.services.missing import MissingError, skip

pytestmark = pytest.mark.services


async def made(bootstrap: str, topic: str, copies: int = 1, **security: object) -> None:
    client = admin.AIOKafkaAdminClient(bootstrap_servers=bootstrap, **security)
    try:
        await client.start()
        await client.create_topics([admin.NewTopic(topic, 1, copies)])
    finally:
        await client.close()


async def sent(bootstrap: str, topic: str, value: bytes, **security: object) -> None:
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, **security
    )
    try:
        await producer.start()
        await producer.send_and_wait(topic, value)
    finally:
        await producer.stop()


async def read(bootstrap: str, topic: str, count: int, **security: object) -> list[bytes]:
    consumer = aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", **security
    )
    try:
        await consumer.start()
        return [(await consumer.getone()).value for _ in range(count)]
    finally:
        await consumer.stop()


def within(story) -> None:
    asyncio.run(asyncio.wait_for(story, PATIENCE_S))


async def test_the_shared_broker_takes_a_record_and_gives_it(broker: Broker, topic: str) -> None:
    await made(broker.bootstrap, topic)
    await sent(broker.bootstrap, topic, b"one")
    assert await read(broker.bootstrap, topic, 1) == [b"one"]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Broker]:
    try:
        broker = Broker(tmp_path / "kafka")
    except MissingError as error:
        skip(error)
    with broker:
        yield broker


async def test_broker_retains_records_when_killed_stopped_or_frozen(own: Broker) -> None:
    await made(own.bootstrap, "t")
    for number, disturb in enumerate(("kill", "stop", "pause"), 1):
        await sent(own.bootstrap, "t", str(number).encode())
        address = own.bootstrap
        getattr(own, disturb)()
        if disturb == "pause":
            with pytest.raises(TimeoutError):
                own.answers()
            own.resume()
        else:
            await asyncio.to_thread(own.start)
        assert own.bootstrap == address
        expected = [str(n).encode() for n in range(1, number + 1)]
        assert await read(own.bootstrap, "t", number) == expected


async def test_three_brokers_lose_nothing_when_one_is_killed(tmp_path: Path) -> None:
    try:
        three = Brokers(tmp_path, 3)
    except MissingError as error:
        skip(error)

    with three:
        await made(three.bootstrap, "t", copies=3)
        await sent(three.bootstrap, "t", b"one")
        three.brokers[0].kill()
        await sent(three.bootstrap, "t", b"two")
        await asyncio.to_thread(three.brokers[0].start)
        assert await read(three.brokers[0].bootstrap, "t", 2) == [b"one", b"two"]


async def test_tls_and_a_password_are_asked_for(tmp_path: Path) -> None:
    key, certificate = certified(tmp_path)
    try:
        broker = Broker(tmp_path / "kafka", secure=Secure(key, certificate, "u", "secret"))
    except MissingError as error:
        skip(error)
    security = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "u",
        "ssl_context": ssl.create_default_context(cafile=certificate),
    }

    with broker:
        right = {**security, "sasl_plain_password": "secret"}
        await made(broker.secure_bootstrap, "t", **right)
        await sent(broker.secure_bootstrap, "t", b"one", **right)
        assert await read(broker.secure_bootstrap, "t", 1, **right) == [b"one"]
        wrong = {**security, "sasl_plain_password": "guessed"}
        with pytest.raises(aiokafka.errors.KafkaConnectionError):
            await sent(broker.secure_bootstrap, "t", b"two", **wrong)


def test_broker_ends_with_the_process_that_started_it(tmp_path: Path, own: Broker) -> None:
    code = (
        "import sys, pathlib, os, signal; from tests.services.kafka import Broker\n"
        f"broker = Broker(pathlib.Path({str(tmp_path / 'theirs')!r})); broker.start()\n"
        "print(broker.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    asyncio.run(asyncio.wait_for(_gone(int(ended.stdout)), PATIENCE_S))


async def _gone(pid: int) -> None:
    while Path(f"/proc/{pid}").exists():
        await asyncio.sleep(0.05)


def test_jars_that_cannot_be_had_are_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("RIPPLE_SERVICES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="a:b:1 needs the command 'mvn'"):
        Jars("b", ("a:b:1",), "0").classpath()
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_a_folder_of_the_cache_is_made_once_and_whole(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("RIPPLE_SERVICES_CACHE", str(tmp_path))

    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise MissingError("nothing there")

    with pytest.raises(MissingError):
        kept("thing", fail)
    folder = kept("thing", lambda folder: (folder / "whole").touch())
    assert [path.name for path in kept("thing", fail).iterdir()] == ["whole"]
    assert folder == tmp_path / "thing"
