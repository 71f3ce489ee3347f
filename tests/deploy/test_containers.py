"""The image that the Dockerfile makes, and the cluster of docker-compose.yml in containers of it.

Containers have the host's network: the name of service *n* is 127.0.1.n there. The broker and the
store are those of the other tests, and not of their images.
"""

from __future__ import annotations

import subprocess
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.deploy import test_stack
from tests.deploy.compose import ROOT, Service
from tests.deploy.engine import IMAGE, Engine
from tests.deploy.stack import Stack
from tests.deploy.test_stack import COORDINATORS, TRADES, WORKERS
from tests.patience import PATIENCE_S
from tests.services.missing import MissingError, skip

pytestmark = pytest.mark.containers

FED_S = 20


class Containers(Stack):
    """The stack, its services in containers with what the file says of them."""

    def __init__(self, folder: Path, variables: dict[str, str], engine: Engine) -> None:
        super().__init__(folder, variables)
        self._engine = engine

    def stop(self, name: str) -> tuple[int, float]:
        process = self._running.pop(name)
        began = time.monotonic()
        self._engine.docker("stop", f"--time={self.services[name].grace_s:.0f}", name)
        return process.wait(), time.monotonic() - began

    def kill(self, name: str) -> None:
        process = self._running.pop(name)
        self._engine.docker("kill", name)
        process.wait()

    def certificates(self) -> Path:
        where = ["volume", "inspect", "--format={{.Mountpoint}}", "certificates"]
        return Path(self._engine.docker(*where).strip())

    def wait_healthy(self, name: str) -> None:
        ends = time.monotonic() + PATIENCE_S
        state = ["inspect", "--format={{.State.Health.Status}}", name]
        while self._engine.docker(*state).strip() != "healthy":
            assert self._running[name].poll() is None, f"{name} has ended:\n{self.log(name)}"
            assert time.monotonic() < ends, f"{name} is not healthy:\n{self.log(name)}"
            time.sleep(0.5)

    def __exit__(self, *given: object) -> None:
        if self._running:
            self._engine.docker("rm", "--force", *self._running)
        super().__exit__(*given)

    def _process(self, service: Service, out: int | None = None) -> subprocess.Popen[bytes]:
        said = service.text
        flags = ["run", f"--name={service.name}", "--rm", "--network=host", "--read-only"]
        assert said["read_only"], service.name
        flags += [f"--cap-drop={one}" for one in said["cap_drop"]]
        flags += [f"--security-opt={one}" for one in said["security_opt"]]
        flags += [f"--tmpfs={one}" for one in said["tmpfs"]]
        flags += [f"--add-host={name}:{at}" for name, at in self._addresses.items()]
        flags += [f"--env={name}={self._to_host(v)}" for name, v in service.environment.items()]
        for volume in said.get("volumes", []):
            outside, colon, rest = volume.partition(":")
            where = self._mounted(service)[rest.split(":")[0]]
            flags.append(f"--volume={where if outside.startswith('./') else outside}{colon}{rest}")
        if said.get("healthcheck", {}).get("disable"):
            flags.append("--no-healthcheck")
        with (self.folder / f"{service.name}.log").open("ab") as log:
            process = self._engine.start_docker(
                *flags, IMAGE, *map(self._to_host, service.command),
                out=log.fileno() if out is None else out, err=log.fileno(),
            )  # fmt: skip
        if out is None:
            self._wait_created(service.name)
        return process

    def _to_host(self, text: str) -> str:
        text = text.replace("broker:9092", self.broker.bootstrap)
        return text.replace("http://store:9000", self.store.endpoint)

    def _wait_created(self, name: str) -> None:
        ends = time.monotonic() + PATIENCE_S
        while not self._engine.docker("ps", "--all", "--quiet", f"--filter=name=^{name}$").strip():
            assert time.monotonic() < ends, f"{name} was not made:\n{self.log(name)}"
            time.sleep(0.2)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    try:
        engine = Engine(tmp_path_factory.mktemp("engine"))
    except MissingError as error:
        skip(error)
    with engine:
        engine.build()
        yield engine


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, engine: Engine) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("stack")
    variables = {"FEED_COUNT": str(TRADES), "FEED_RATE": str(TRADES / FED_S)}
    try:
        stack = Containers(folder, variables, engine)
    except MissingError as error:
        skip(error)
    with stack:
        stack.up()
        for name in (*COORDINATORS, *WORKERS):
            stack.wait_healthy(name)
        yield stack


def test_the_image_has_all_programs_and_nothing_to_build_with(engine: Engine) -> None:
    run = ["run", "--rm", "--network=host", "--read-only", IMAGE]
    for program in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]:
        assert "usage" in engine.docker(*run, program, "--help"), program
    assert engine.docker(*run, "id", "-u").strip() == "10001"
    absent = (
        "for one in gcc cc g++ /opt/ripple/bin/pip; do command -v $one && exit 1; done; echo none"
    )
    assert engine.docker(*run, "sh", "-c", absent).strip() == "none"
    assert "Portfolio" in engine.docker(
        *run, "sh", "-c", "ripple-vwap-demo --synthetic 1000 2>&1 >/dev/null"
    )


def test_trades_count_once_while_a_worker_and_a_coordinator_are_killed(
    stack: Stack, tmp_path: Path
) -> None:
    with ThreadPoolExecutor() as beside:
        fed = beside.submit(stack.run, "feed")
        for name in ("worker-3", "coordinator-1"):
            time.sleep(FED_S / 4)
            stack.kill(name)
        time.sleep(FED_S / 4)
        assert not fed.done()
        stack.up("worker-3", "coordinator-1")
        fed.result()
    test_stack.equal_one_process(stack, tmp_path)


# Then what is tried of the same services as processes.
test_a_gateway = test_stack.test_a_gateway_shows_the_same_to_those_with_a_certificate
test_status = test_stack.test_the_cluster_says_that_three_workers_are_active
test_a_replaced_worker = (
    test_stack.test_a_worker_that_is_replaced_moves_its_partitions_within_its_grace
)
test_pages_of_metrics = test_stack.test_all_that_prometheus_is_told_to_scrape_answers
