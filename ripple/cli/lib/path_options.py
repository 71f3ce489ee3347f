"""Types of a command's arguments: files, URIs and addresses."""

from __future__ import annotations

import argparse
import os

from ripple.world.addresses import joined, parts

STORE = "DIR|s3://BUCKET/PREFIX"
LOOPBACK = "127.0.0.1"


def a_place(text: str) -> str:
    """Parse a path or URI; an empty one, of an unset variable say, is refused."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def a_picture(text: str) -> str:
    """Parse the name of a picture to write; another file, such as the pipeline's, is refused."""
    if not text.endswith(".svg"):
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .svg, which is its format")
    return text


def a_store(text: str) -> str:
    """Parse the URI of a checkpoint store: a folder, or ``s3://bucket/prefix``."""
    from ripple.storage.store.s3_settings import is_s3, split_url  # noqa: PLC0415 - few commands have one

    place = a_place(text)
    if is_s3(place):
        split_url(place)  # a mistake is reported before anything is opened
    elif "://" in place:
        raise argparse.ArgumentTypeError(f"{place} is neither a folder nor s3://bucket/prefix")
    return place


def an_address(text: str) -> str:
    """Parse an address to listen on; without a host, on the loopback interface."""
    try:
        host, port = parts(f"{LOOPBACK}{text}" if text.startswith(":") else text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no address: HOST:PORT, or :PORT for this machine only"
        ) from error
    return joined(host, port)


def store_below(place: str) -> str:
    """Return a hint to the store in the folder of a cluster, or ""."""
    below = os.path.join(place, "store")
    return f"; a cluster's are in {below}" if os.path.isdir(below) else ""
