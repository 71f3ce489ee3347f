"""Versions of files: a file that changes after it was first seen is noticed by them."""

from __future__ import annotations

import os
from typing import NamedTuple

from ripple.core.errors import InputError


class Version(NamedTuple):
    """The length of a file, and a text that changes with its content: its ETag, or its time."""

    size_bytes: int
    stamp: str


class FileGoneError(InputError):
    """There is no file of this name."""


def local_version(path: str) -> Version:
    """Return the version of a file of this machine. Raises InputError and FileGoneError."""
    try:
        status = os.stat(path)
    except FileNotFoundError as error:
        raise FileGoneError(f"cannot read {path}: {error.strerror}") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    return Version(status.st_size, str(status.st_mtime_ns))


def changed(path: str, was: Version, now: Version) -> InputError:
    """Return the error for a file that differs from its first or recorded version."""
    return InputError(
        f"{path} has changed since it was first read: it had {was.size_bytes} bytes (version "
        f"{was.stamp or 'unknown'}), and has {now.size_bytes} ({now.stamp or 'unknown'}): bring "
        "back that version, or start over with other outputs and another folder of checkpoints"
    )
