"""A container engine of Debian's packages. Containers have the host's network, and no other."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.deploy import tools
from tests.deploy.compose import ROOT
from tests.services.cache import fetch, kept, needed
from tests.services.missing import MissingError
from tests.services.server import Server

BASE = "python:3.11-slim-bookworm"  # what the Dockerfile asks for, made of Debian's own Python
IMAGE = "ripple:latest"
ANSWER_S, BUILD_S = 5, 1800
_PACKAGES = ["docker.io", "containerd", "runc", "debootstrap"]
_IN_BASE = "python3,python3-dev,python3-pip,python3-venv,ca-certificates,openssl"


class Engine(Server):
    """``dockerd``; ``docker`` asks it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        if os.geteuid():
            raise MissingError("a container engine is run by root")
        self._programs = _engine()
        self._base = _base(self._programs)
        # A socket's path is short.
        self._sockets = Path(tempfile.mkdtemp(prefix="engine-"))

    @property
    def variables(self) -> dict[str, str]:
        path = f"{self._programs / 'usr/bin'}:{self._programs / 'usr/sbin'}:{os.environ['PATH']}"
        return {"PATH": path, "DOCKER_HOST": f"unix://{self._sockets}/engine"}

    def command(self) -> list[str]:
        return [
            str(self._programs / "usr/sbin/dockerd"),
            *("--data-root", str(self.folder / "data"), "--pidfile", str(self.folder / "pid")),
            *("--exec-root", str(self._sockets / "exec")),
            *("-H", f"unix://{self._sockets}/engine"),
            *("--iptables=false", "--ip6tables=false", "--bridge=none"),
        ]

    def answers(self) -> bool:
        try:
            return self._ask("version", within_s=ANSWER_S).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def stop(self) -> None:
        super().stop()
        shutil.rmtree(self._sockets, ignore_errors=True)

    def build(self) -> None:
        """Build the image of the Dockerfile, on the base that stands for the published one."""
        path = "PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin"
        self.docker("import", "-c", f"ENV {path}", str(self._base), BASE)
        self.docker("build", "--network=host", "--tag", IMAGE, str(ROOT))

    def docker(self, *arguments: str) -> str:
        """Return what docker prints; it must succeed."""
        ended = self._ask(*arguments)
        assert ended.returncode == 0, f"docker {arguments}: {ended.stdout[-4000:]}\n{ended.stderr}"
        return ended.stdout

    def start_docker(self, *arguments: str, out: int, err: int) -> subprocess.Popen[bytes]:
        """Start docker with something that lasts."""
        return subprocess.Popen(
            ["docker", *arguments],
            env={**os.environ, **self.variables},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )

    def _ask(self, *arguments: str, within_s: float = BUILD_S) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["docker", *arguments],
            # Its other builder is a package of its own.
            env={**os.environ, **self.variables, "DOCKER_BUILDKIT": "0"},
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )


def _engine() -> Path:
    """Return a folder with the engine's programs. Raises MissingError."""

    def unpack(folder: Path) -> None:
        for package in _PACKAGES:
            tools.unpacked(package, folder)

    return kept("docker-of-debian", unpack)


def _base(programs: Path) -> Path:
    """Return an archive of a system like that of the base image. Raises MissingError."""

    def make(folder: Path) -> None:
        root = folder / "root"
        bootstrap = [str(programs / "usr/sbin/debootstrap"), "--variant=minbase"]
        where = f"DEBOOTSTRAP_DIR={programs / 'usr/share/debootstrap'}"
        made = ["env", where, *bootstrap, f"--include={_IN_BASE}", "bookworm", str(root)]
        fetch(made, folder, "Debian's base system")
        for managed in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
            managed.unlink()
        (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
        trusted = Path("/etc/ssl/certs/ca-certificates.crt")
        shutil.copy(trusted, root / trusted.relative_to("/"))  # whom this machine trusts
        fetch([needed("tar", "the base"), "-C", str(root), "-cf", "base.tar", "."], folder, "tar")
        shutil.rmtree(root)

    return kept("python-of-bookworm", make) / "base.tar"
