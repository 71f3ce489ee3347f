"""Kubernetes' own API server, with nothing behind it: it judges objects, and no pod is started."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path
from typing import Any

from tests.deploy import tools
from tests.services.certificate import certified
from tests.services.server import Server, free_port

TOKEN = "of-a-test"


class Etcd(Server):
    """What the API server keeps objects in."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.port, self._peer_port = free_port(), free_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        peer = f"http://127.0.0.1:{self._peer_port}"
        return [
            *(str(tools.etcd()), "--data-dir=data", "--initial-cluster", f"default={peer}"),
            *("--listen-client-urls", self.url, "--advertise-client-urls", self.url),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
        ]

    def answers(self) -> bool:
        socket.create_connection(("127.0.0.1", self.port)).close()
        return True


class ApiServer(Server):
    """The API server; ``kubectl`` talks to it as an administrator."""

    def __init__(self, folder: Path, etcd: Etcd) -> None:
        super().__init__(folder)
        self.port = free_port()
        self._etcd = etcd

    def prepare(self) -> None:
        certified(self.folder)
        (self.folder / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")

    def command(self) -> list[str]:
        return [
            *(str(tools.kube_apiserver()), f"--etcd-servers={self._etcd.url}"),
            *("--bind-address=127.0.0.1", f"--secure-port={self.port}"),
            *("--tls-cert-file=certificate.pem", "--tls-private-key-file=key.pem"),
            *("--token-auth-file=tokens.csv", "--authorization-mode=AlwaysAllow"),
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=certificate.pem",
            "--service-account-signing-key-file=key.pem",
            # Nobody makes accounts for pods here, and nobody asks where the server is.
            *("--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none"),
        ]

    def answers(self) -> bool:
        return self._kubectl("get", "--raw=/readyz").returncode == 0

    def kubectl(self, *arguments: str | Path, given: str = "") -> str:
        """Return what kubectl prints. Raises RefusedError."""
        ended = self._kubectl(*map(str, arguments), given=given)
        if ended.returncode:
            raise RefusedError(ended.stderr)
        return ended.stdout

    def apply(self, one: dict[str, Any]) -> str:
        """Apply one object, on the server's side."""
        return self.kubectl("apply", "--server-side", "-f", "-", given=json.dumps(one))

    def _kubectl(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        kubectl = tools.of_python(tools.KUBECTL) / "bin/kubectl"
        to = [f"--server=https://127.0.0.1:{self.port}", f"--token={TOKEN}"]
        known = f"--certificate-authority={self.folder / 'certificate.pem'}"
        return subprocess.run(
            [kubectl, *to, known, *arguments],
            input=given, capture_output=True, text=True, check=False,
        )  # fmt: skip


class RefusedError(Exception):
    """What the API server does not take, and why."""
