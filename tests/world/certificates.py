"""Issuers of certificates, for live and for simulated networks."""

from __future__ import annotations

import shutil
from pathlib import Path

from ripple.cli.main import main as ripple
from ripple.testing import SimDisk
from ripple.testing.sim import tls as sim_tls
from ripple.world import Tls


class LiveCertificates:
    """Made by the command."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def issue(self, name: str, authority: str = "ca") -> Tls:
        folder = self._folder / authority
        assert ripple(["cert", "--dir", str(folder), "--name", name]) == 0
        return Tls(
            certificate=str(folder / f"{name}.crt"),
            key=str(folder / f"{name}.key"),
            authority=str(shutil.copy(folder / "ca.crt", folder / f"{name}-ca.crt")),
        )

    def replace(self, path: str, by: str) -> None:
        shutil.copy(by, f"{path}.new")
        Path(f"{path}.new").replace(path)

    def spoil(self, path: str) -> None:
        Path(path).write_text("nonsense")


class SimCertificates:
    """Made of names."""

    def __init__(self, disk: SimDisk) -> None:
        self._disk = disk

    def issue(self, name: str, authority: str = "ca") -> Tls:
        return sim_tls.issue(self._disk, name, authority=authority)

    def replace(self, path: str, by: str) -> None:
        data = self._disk.contents(by)
        assert data is not None
        self._disk.install({path: data})

    def spoil(self, path: str) -> None:
        self._disk.install({path: b"nonsense"})
