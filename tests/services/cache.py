"""What was fetched for the services, kept outside of the tree for every later run.

In ``$RIPPLE_SERVICES_CACHE``, or ``~/.cache/ripple-services``.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.services.missing import MissingError

FETCH_S = 900


def kept(name: str, make: Callable[[Path], None], cache: Path | None = None) -> Path:
    """Return a folder of the cache, which ``make`` fills if it is not there yet.

    It appears whole or not at all. Of several processes one makes it and the others wait. cache:
    another place, for what goes with a virtual environment or a checkout.
    """
    cache = cache or _cache()
    folder = cache / name
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return folder
        made = Path(tempfile.mkdtemp(prefix=f"{name}.tmp-", dir=cache))
        try:
            make(made)
            made.rename(folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return folder


def digest(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of a folder's files."""
    total = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        total.update(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n".encode())
    return total.hexdigest()


def fetch(command: list[str], folder: Path, what: str) -> None:
    """Run a command in ``folder`` that fetches something; its last line tells why it could not."""
    try:
        ended = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=FETCH_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise MissingError(f"{what}: not fetched within {FETCH_S} s") from error
    if ended.returncode:
        lines = [line for line in ended.stdout.splitlines() if line.strip()]
        first = next((line for line in lines if "ERROR" in line), (lines or ["?"])[-1])
        raise MissingError(f"{what} cannot be fetched: {first}")


def needed(command: str, what: str) -> str:
    """Return where a command is that ``what`` needs."""
    found = shutil.which(command)
    if found is None:
        raise MissingError(f"{what} needs the command {command!r}, which is not on the PATH")
    return found


def _cache() -> Path:
    named = os.environ.get("RIPPLE_SERVICES_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "ripple-services"
