"""Where a command reads and writes: refusing what would destroy or mix up data."""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Iterable

from ripple.core.errors import OutputError
from ripple.world.addresses import joined, parts

STORE = "DIR|s3://BUCKET/PREFIX"
LOOPBACK = "127.0.0.1"


def a_place(text: str) -> str:
    """Read a path or another place; an empty one, of a variable not set say, is no folder."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def a_store(text: str) -> str:
    """Read where checkpoints are: a folder, or ``s3://bucket/prefix``."""
    from ripple.storage.store.s3_settings import is_s3, split_url  # noqa: PLC0415 - few commands have one

    place = a_place(text)
    if is_s3(place):
        split_url(place)  # said before anything is opened
    elif "://" in place:
        raise argparse.ArgumentTypeError(f"{place} is neither a folder nor s3://bucket/prefix")
    return place


def an_address(text: str) -> str:
    """Read where to listen; without a host it is for this machine only."""
    try:
        host, port = parts(f"{LOOPBACK}{text}" if text.startswith(":") else text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no address: HOST:PORT, or :PORT for this machine only"
        ) from error
    return joined(host, port)


def check_apart(source: str | None, targets: Iterable[str | None]) -> None:
    """Raise OutputError when two places are the same file, or both standard output.

    source, targets: paths, ``-``, or None for what is no file. Devices and pipes may be shared, and
    folders of logs be written to more than once, as they have locks.
    """
    read = _identity(source, 0) if source is not None else None
    seen: dict[tuple[int, int] | str, str] = {}
    for target in targets:
        identity = None if target is None else _identity(target, 1)
        if target is None or identity is None:
            continue
        if identity == read:
            raise OutputError(f"cannot write {_name(target)}: it is what is read from")
        if identity in seen and not os.path.isdir(target):
            raise OutputError(
                f"cannot write two things to {_name(target)}: give each a place of its own"
            )
        seen[identity] = target


def _identity(place: str, descriptor: int) -> tuple[int, int] | str | None:
    """Return what tells the place from others, None if it may be used twice."""
    try:
        status = os.fstat(descriptor) if place == "-" else os.stat(place)
    except OSError:
        return os.path.realpath(place)  # does not exist yet
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return status.st_dev, status.st_ino
    return "-" if place == "-" and descriptor == 1 else None


def _name(place: str) -> str:
    return "standard output" if place == "-" else place
