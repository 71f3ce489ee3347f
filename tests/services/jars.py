"""Java programs from Maven's default repository, by pinned version and checksum."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.services.cache import digest, fetch, kept, needed
from tests.services.missing import MissingError
from tests.services.server import Server

JAVA_MIN = 17
POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId><artifactId>services</artifactId><version>1</version>
  <dependencies>{}</dependencies>
</project>
"""


@dataclass(frozen=True)
class Jars:
    """A program and all that it needs.

    artifacts: group:name:version, the program first. without: group:name of what is not to be
    fetched. sha256: of all jars' names and contents, so that nothing else is ever run.
    """

    name: str
    artifacts: tuple[str, ...]
    sha256: str
    without: tuple[str, ...] = ()

    def classpath(self) -> str:
        """Fetch the jars if they are not there yet; return them as Java takes them.

        Raises MissingError.
        """
        version = self.artifacts[0].rpartition(":")[2]
        return f"{kept(f'{self.name}-{version}-{self.sha256[:8]}', self._fetch)}/*"

    def _fetch(self, folder: Path) -> None:
        what = self.artifacts[0]
        pom = folder / "pom.xml"
        pom.write_text(POM.format("".join(map(self._dependency, self.artifacts))))
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=."]
        fetch([needed("mvn", what), "-B", "-q", *copy], folder, what)
        pom.unlink()
        if (found := digest(folder)) != self.sha256:
            raise ValueError(f"{what}: the jars' checksum is {found}, and not {self.sha256}")

    def _dependency(self, artifact: str) -> str:
        group, name, version = artifact.split(":")
        without = "".join(
            "<exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion>".format(
                *other.split(":")
            )
            for other in self.without
        )
        return (
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version><exclusions>{without}</exclusions></dependency>"
        )


class JavaServer(Server):
    """A program in Java that serves. Raises MissingError where it cannot be had."""

    def __init__(self, folder: Path, jars: Jars, what: str) -> None:
        super().__init__(folder)
        self._jars = jars
        self._java = java(what)
        self._classpath = jars.classpath()
        self._archives = False

    def archive(self) -> str:
        """Return Java's option for an archive of the program's classes: a start is cheaper with it.

        Another server of this kind makes it, when that ends.
        """
        file = f"{self._jars.name}.jsa"
        if self._archives:
            return f"-XX:ArchiveClassesAtExit=../{file}"

        def make(folder: Path) -> None:
            other = type(self)(folder / "once")
            other._archives = True
            with other:
                pass
            assert (folder / file).exists(), other.log.read_text()
            shutil.rmtree(folder / "once")

        version = f"{self._jars.sha256[:8]}-java-{java_digest(self._java)}"
        return f"-XX:SharedArchiveFile={kept(f'{self._jars.name}-archive-{version}', make) / file}"


def java(what: str) -> str:
    """Return the command. Raises MissingError."""
    command = needed("java", what)
    if (major := int(_version(command).split('"')[1].split(".")[0])) < JAVA_MIN:
        raise MissingError(f"{what} needs Java {JAVA_MIN}, and {command} is Java {major}")
    return command


def java_digest(command: str) -> str:
    """Return a name for this very version of Java: archives of classes fit no other."""
    return hashlib.sha256(_version(command).encode()).hexdigest()[:8]


def _version(command: str) -> str:
    ended = subprocess.run([command, "-version"], capture_output=True, text=True, check=True)
    return ended.stderr
