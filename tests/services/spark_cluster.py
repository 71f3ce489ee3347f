"""A standalone cluster of Spark with two workers, and the processes of its executors."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.patience import until
from tests.services.family import below

ROOT = Path(__file__).parents[2]
WORKERS = 2
CORES = 2
# Frozen processes are noticed, by tens of seconds, for a busy machine is none; a killed executor is
# replaced however often it happens.
SETTINGS = {
    "spark.cores.max": str(CORES),
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.heartbeatInterval": "3s",
    "spark.network.timeout": "30s",
    "spark.network.timeoutInterval": "3s",
    "spark.task.maxFailures": "9",
    "spark.python.worker.idleTimeoutSeconds": "60",
    "spark.python.worker.killOnIdleTimeout": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
}
# JVMs that are there for a minute: without the compiler that pays off in the long run.
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
HERE = ("--host", "127.0.0.1", "--webui-port", "0")
EXECUTOR, PYTHON = "CoarseGrainedExecutorBackend", "pyspark.daemon"


class Cluster:
    """A master and two workers on this machine."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        self._home = Path(pyspark.__file__).parent
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.master = f"spark://127.0.0.1:{free.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        port = self.master.rpartition(":")[2]
        self._start("master", "Master", ("--port", port), "elected leader")
        given = ("-c", str(CORES), "-m", "1g")
        for number in range(WORKERS):
            more = (*given, "-d", str(self._folder / f"work-{number}"), self.master)
            self._start(f"worker-{number}", "Worker", ("--port", "0", *more), "registered with")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        family = [pid for one in self._processes for pid in below(one.pid)]
        for one in self._processes:
            one.kill()
            one.wait()
        strike(family, signal.SIGKILL)

    def commands(self) -> list[str]:
        """Return the options of a command for this cluster."""
        settings = [word for one in SETTINGS.items() for word in ("--conf", "=".join(one))]
        return ["--master", self.master, *settings]

    def executors(self) -> list[int]:
        """Return the JVMs of executors."""
        return self._family(EXECUTOR)

    def pythons(self) -> list[int]:
        """Return the Python processes that run tasks: those that a daemon has forked."""
        found = self._family(PYTHON)
        return [pid for pid in found if _parent(pid) in found]

    def _family(self, name: str) -> list[int]:
        lines = {pid: line for one in self._processes for pid, line in below(one.pid).items()}
        return sorted(pid for pid, line in lines.items() if name in line)

    def _start(self, name: str, what: str, words: tuple[str, ...], begun: str) -> None:
        log = self._folder / f"{name}.log"
        program = f"org.apache.spark.deploy.{what.lower()}.{what}"
        command = [str(self._home / "bin" / "spark-class"), program, *HERE, *words]
        environment = {
            **os.environ,
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_JAVA_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
            "SPARK_DAEMON_MEMORY": "256m",
            "JAVA_TOOL_OPTIONS": JVM,
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable,
        }
        with log.open("wb") as said:
            process = subprocess.Popen(
                command, env=environment, cwd=self._folder, stdout=said, stderr=said
            )
        self._processes.append(process)
        until(lambda: begun in log.read_text(), log.read_text)


def strike(pids: list[int], what: signal.Signals) -> int:
    """Send a signal to processes; return how many there were."""
    done = 0
    for pid in pids:
        try:
            os.kill(pid, what)
            done += 1
        except ProcessLookupError:
            continue
    return done


def _parent(pid: int) -> int:
    try:
        return int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
