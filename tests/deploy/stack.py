"""The services of docker-compose.yml as processes on this machine, where no container can run.

Each has the command and the environment of the file alone, in an empty folder of its own.
What a container engine does is done here: the name of service *n* is the address 127.0.1.n, so that
all ports stay; a path in a volume is one in a folder; what depends on something waits for it, and
healthy is who the image's health check finds so. The broker and the store are those of the other
tests, and the jobs that prepare them are read and done.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.deploy.compose import ROOT, Service, in_order, services
from tests.patience import PATIENCE_S
from tests.services.kafka import Broker
from tests.services.kafka_topics import Topics
from tests.services.s3 import PASSWORD, USER, S3Proxy

# What stands for the services of others.
BROKER, STORE, TOPICS, BUCKET = "broker", "store", "topics", "bucket"
IN_IMAGE = {"/opt/ripple/healthy.py": str(ROOT / "deploy/docker/healthy.py")}
NAMES = ("RIPPLE_WORKER_ID",)  # what is a name and no address


class Stack:
    """What is up, in ``folder``. variables: those of the file that are given."""

    def __init__(self, folder: Path, variables: Mapping[str, str] | None = None) -> None:
        given = {"STORE_USER": USER, "STORE_PASSWORD": PASSWORD, **(variables or {})}
        self.services = services(given)
        self.folder = folder
        self.broker = Broker(folder / "broker")
        self.store = S3Proxy(folder / "store")
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._done: set[str] = set()
        lasting = [name for name, one in self.services.items() if one.is_ours and not one.is_job]
        self._addresses = {name: f"127.0.1.{number}" for number, name in enumerate(lasting, 1)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()
        for server in (self.broker, self.store):
            server.kill()

    def up(self, *names: str) -> None:
        """Start services, all without a profile by default, with what they depend on."""
        default = [name for name, one in self.services.items() if not one.profiles]
        for service in in_order(self.services, names or default):
            for before, condition in service.after.items():
                self._wait_for(before, condition)
            self._start(service)

    def run(self, name: str) -> str:
        """Run a service to its end, which must be good; return what it printed."""
        process = self._process(self.services[name], subprocess.PIPE)
        said = process.communicate(timeout=PATIENCE_S)[0].decode()
        assert process.returncode == 0, f"{name}: {said}\n{self.log(name)}"
        return said

    def stop(self, name: str) -> tuple[int, float]:
        """End a service as an engine does; return its exit code and how long it took."""
        process = self._running.pop(name)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(self.services[name].grace_s)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        return code, time.monotonic() - began

    def kill(self, name: str) -> None:
        """Kill a service as no engine would."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def wait_healthy(self, name: str) -> None:
        """Wait until the image's health check finds a service healthy."""
        service = self.services[name]
        check = [sys.executable, "-I", "-S", IN_IMAGE["/opt/ripple/healthy.py"]]
        ends = time.monotonic() + PATIENCE_S
        while subprocess.run(check, env=self._environment(service), check=False).returncode:
            assert name in self._running, f"{name} was never started"
            assert self._running[name].poll() is None, f"{name} has ended:\n{self.log(name)}"
            assert time.monotonic() < ends, f"{name} is not healthy:\n{self.log(name)}"
            time.sleep(0.5)

    def address(self, target: str) -> str:
        """Return where ``service:port`` is on this machine."""
        return self._here(target, {})

    def certificates(self) -> Path:
        """Return the folder that is the volume of certificates."""
        return self.folder / "volumes/certificates"

    def log(self, name: str) -> str:
        """Return the end of what a service has said."""
        return "\n".join((self.folder / f"{name}.log").read_text().splitlines()[-40:])

    def root_of(self, name: str) -> Path:
        """Return the folder that is a container's own file system, where nobody may write."""
        return self.folder / "roots" / name

    def _start(self, service: Service) -> None:
        if service.name in self._running or service.name in self._done:
            return
        if service.name == BROKER:
            self.broker.start()
        elif service.name == STORE:
            self.store.start()
        elif service.name == TOPICS:
            asyncio.run(self._make_topic(service.command))
        elif service.name == BUCKET:
            self.store.make_bucket(service.command[-1].partition("/")[2])
        elif service.is_job:
            self.run(service.name)
        else:
            assert service.is_ours, f"{service.name} cannot run here"
            self._running[service.name] = self._process(service)
            return
        self._done.add(service.name)

    def _wait_for(self, name: str, condition: str) -> None:
        if name in self._done:
            return
        assert condition != "service_completed_successfully", f"{name} was never run"
        if condition == "service_healthy":
            self.wait_healthy(name)

    async def _make_topic(self, command: tuple[str, ...]) -> None:
        flags = dict(flag.removeprefix("--").split("=") for flag in command if "=" in flag)
        assert flags["bootstrap-server"] == "broker:9092"
        async with Topics(self.broker.bootstrap) as topics:
            await topics.create(flags["topic"], int(flags["partitions"]))

    def _process(self, service: Service, out: int | None = None) -> subprocess.Popen[bytes]:
        root = self.root_of(service.name)
        root.mkdir(parents=True, exist_ok=True)
        mounted = self._mounted(service)
        with (self.folder / f"{service.name}.log").open("ab") as log:
            return subprocess.Popen(
                [self._here(word, mounted) for word in service.command],
                cwd=root,
                env=self._environment(service),
                stdin=subprocess.DEVNULL,
                stdout=log if out is None else out,
                stderr=log,
            )

    def _environment(self, service: Service) -> dict[str, str]:
        mounted = self._mounted(service)
        given = {
            name: value if name in NAMES else self._here(value, mounted)
            for name, value in service.environment.items()
        }
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {"PATH": path, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **given}

    def _mounted(self, service: Service) -> dict[str, str]:
        """Return what stands where in a container, as here."""
        found = dict(IN_IMAGE)
        for inside, outside in service.volumes.items():
            if outside.startswith("./"):
                found[inside] = str(ROOT / outside)
            else:
                folder = self.folder / "volumes" / outside
                folder.mkdir(parents=True, exist_ok=True)
                found[inside] = str(folder)
        return found

    def _here(self, text: str, mounted: Mapping[str, str]) -> str:
        text = text.replace("broker:9092", self.broker.bootstrap)
        text = text.replace("http://store:9000", self.store.endpoint)
        for name, address in self._addresses.items():
            text = re.sub(rf"(?<![\w./-]){name}(?![\w./-])", address, text)
        for inside, outside in mounted.items():
            text = text.replace(inside, outside)
        return text
