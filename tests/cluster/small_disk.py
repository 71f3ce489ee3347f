"""A disk of a known size, which can be filled: a file system in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path


def missing() -> str | None:
    """Return why there can be no such disk here, None where there can."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "it needs Linux, and to be root"
    return None


class SmallDisk:
    """A disk at a folder, which is made."""

    def __init__(self, folder: Path, size_bytes: int) -> None:
        """Mount it. Raises CalledProcessError where that cannot be."""
        self.folder = folder
        self._filling = folder / "filling"
        folder.mkdir()
        options = ["-t", "tmpfs", "-o", f"size={size_bytes}"]
        subprocess.run(["mount", *options, "tmpfs", str(folder)], check=True, capture_output=True)

    def fill(self) -> None:
        """Leave no room; if it is full already it stays so."""
        for piece in (1 << 20, 1 << 12, 1):
            with suppress(OSError), self._filling.open("ab", buffering=0) as file:
                while True:
                    file.write(b"\0" * piece)

    def free(self) -> None:
        """Leave the room that there was."""
        self._filling.unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount it; what is on it is gone."""
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)
