"""Real object stores that speak S3: S3Proxy, which keeps its objects in files, and moto."""

from __future__ import annotations

import asyncio
import sys
import urllib.error
import urllib.request
from pathlib import Path

from aiobotocore.session import get_session

from tests.services.cache import fetch, kept
from tests.services.jars import Jars, JavaServer
from tests.services.server import Server, free_port

S3PROXY = Jars(
    "s3proxy",
    ("org.gaul:s3proxy:4.1.0", "com.fasterxml.jackson.core:jackson-annotations:2.21"),
    "26bc35a3d5896465dbfef1dc2f85e06fd46997040bc83706c36e0b396f642c06",
)
MOTO = "moto[server,s3]==5.2.5"
MOTO_SERVER = Path(__file__).with_name("moto_server.py")
USER, PASSWORD = "test", "testtest"
LOGBACK = """<configuration><appender name="out" class="ch.qos.logback.core.ConsoleAppender">
<encoder><pattern>%d %p %c{1} %m%n</pattern></encoder></appender>
<root level="WARN"><appender-ref ref="out"/></root></configuration>
"""
SETTINGS = """s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={user}
s3proxy.credential={password}
s3proxy.endpoint=http://127.0.0.1:{port}
jclouds.provider=filesystem-nio2
jclouds.identity=x
jclouds.credential=x
jclouds.filesystem.basedir={data}
"""
CALL_S = 2.0


class ObjectServer(Server):
    """A server of S3 at ``endpoint``, for ``USER`` with ``PASSWORD``."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.port = free_port()

    @property
    def endpoint(self) -> str:
        """Return where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Return what tells a process of Ripple's where it is, and who it is."""
        return {
            "RIPPLE_S3_ENDPOINT": self.endpoint,
            "AWS_ACCESS_KEY_ID": USER,
            "AWS_SECRET_ACCESS_KEY": PASSWORD,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def make_bucket(self, name: str) -> None:
        """Make a bucket."""
        asyncio.run(self._make_bucket(name))

    async def _make_bucket(self, name: str) -> None:
        async with get_session().create_client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=USER,
            aws_secret_access_key=PASSWORD,
        ) as client:
            await client.create_bucket(Bucket=name)

    def answers(self) -> bool:
        """Ask for anything: one that refuses is there."""
        try:
            with urllib.request.urlopen(self.endpoint, timeout=CALL_S):
                return True
        except urllib.error.HTTPError as refused:
            with refused:
                return True


class S3Proxy(JavaServer, ObjectServer):
    """S3Proxy, whose objects outlive it. Raises MissingError where it cannot be had."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, S3PROXY, "S3Proxy")

    def prepare(self) -> None:
        """Write the configuration."""
        data = self.folder / "data"
        data.mkdir()
        (self.folder / "logback.xml").write_text(LOGBACK)
        settings = SETTINGS.format(user=USER, password=PASSWORD, port=self.port, data=data)
        (self.folder / "s3proxy.conf").write_text(settings)

    def command(self) -> list[str]:
        """Return what to run."""
        java_given = [
            "-Xmx512m",
            "-XX:TieredStopAtLevel=1",
            self.archive(),
            "-Dlogback.configurationFile=logback.xml",
        ]
        main = ["org.gaul.s3proxy.Main", "--properties", "s3proxy.conf"]
        return [self._java, *java_given, "-cp", self._classpath, *main]


class Moto(ObjectServer):
    """Moto, whose objects are gone with it; it checks no signature, and lets several racing
    multipart uploads win. Raises MissingError where it cannot be had.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        version = f"python-{sys.version_info.major}.{sys.version_info.minor}"
        self._venv = kept(f"moto-{MOTO.rpartition('=')[2]}-{version}", _install_moto)

    def command(self) -> list[str]:
        """Return what to run."""
        server = ["-P", str(MOTO_SERVER), "-H", "127.0.0.1", "-p", str(self.port)]
        return [sys.executable, *server]

    @property
    def variables(self) -> dict[str, str]:
        """Return what its process is told beside."""
        return {"PYTHONPATH": str(self._venv)}


def _install_moto(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    fetch([*pip, "--target", str(folder), MOTO], folder, MOTO)
