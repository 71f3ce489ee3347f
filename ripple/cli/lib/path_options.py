"""Where a command reads, writes and listens: types of its arguments."""

from __future__ import annotations

import argparse

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
