"""A real registry of schemas that speaks Confluent's API: Apicurio, which keeps them in memory."""

from __future__ import annotations

import hashlib
import urllib.request
from pathlib import Path

from tests.services.cache import fetch, kept, needed
from tests.services.jars import java
from tests.services.server import Server, free_port

ARTIFACT = "io.apicurio:apicurio-registry-app:3.0.9:tar.gz:all"
SHA256 = "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"
CALL_S = 2.0


class SchemaRegistry(Server):
    """A registry at ``url``; what it holds is gone with it. Raises MissingError."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.port = free_port()
        self._java = java("Apicurio Registry")
        self._program = kept(f"apicurio-3.0.9-{SHA256[:8]}", _fetch)

    @property
    def url(self) -> str:
        """Return where clients of Confluent's find it."""
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    @property
    def variables(self) -> dict[str, str]:
        """Return what its process is told beside."""
        return {"QUARKUS_HTTP_PORT": str(self.port), "QUARKUS_HTTP_HOST": "127.0.0.1"}

    def command(self) -> list[str]:
        """Return what to run."""
        (jar,) = self._program.glob("*-runner.jar")
        given = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return [self._java, *given, "-jar", str(jar)]

    def answers(self) -> bool:
        """Ask for all subjects."""
        with urllib.request.urlopen(f"{self.url}/subjects", timeout=CALL_S) as answer:
            return bool(answer.status == 200)


def _fetch(folder: Path) -> None:
    copy = ["dependency:copy", f"-Dartifact={ARTIFACT}", "-DoutputDirectory=."]
    fetch([needed("mvn", ARTIFACT), "-B", "-q", *copy], folder, ARTIFACT)
    (archive,) = folder.glob("*.tar.gz")
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        raise ValueError(f"{ARTIFACT}: the checksum is {found}, and not {SHA256}")
    fetch(["tar", "-xzf", archive.name], folder, ARTIFACT)
    archive.unlink()
