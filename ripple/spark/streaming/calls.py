"""Processes of a query asking each other: Spark gives a task to whichever of them is free.

What is sent is pickled, as Spark's tasks are; who listens answers only those who know the token of
the query, and proves to them that it knows it.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from functools import cache
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import TYPE_CHECKING, Any

from ripple.spark.streaming.resident import here

if TYPE_CHECKING:
    from ripple.spark.streaming.turn import Address, Turn


@cache
def served(token: str, driver: str) -> Address:
    """Return the address at which this process does turns for others; it begins to.

    driver: its host, by which this one's is known.
    """
    host = _host(driver)
    listener = Listener((host, 0), backlog=16, authkey=token.encode())
    threading.Thread(target=_serve, args=(listener,), name="ripple-calls", daemon=True).start()
    return host, listener.address[1]


def asked(address: Address, token: str, turn: Turn) -> dict[str, Any] | None:
    """Let a process do a turn, and return its report; None if it cannot be reached any more.

    Raises what the life raises there.
    """
    try:
        with Client((address[0], address[1]), authkey=token.encode()) as connection:
            connection.send(turn)
            found = connection.recv()
    except (OSError, EOFError, AuthenticationError):
        return None
    if isinstance(found, BaseException):
        raise found
    report: dict[str, Any] = found
    return report


def _serve(listener: Listener) -> None:
    while True:
        try:
            connection = listener.accept()
        except (OSError, EOFError, AuthenticationError):
            continue  # somebody who does not know the token, or who has gone again
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: Connection) -> None:
    with connection, suppress(OSError, EOFError):
        turn = connection.recv()
        try:
            connection.send(here().bring(turn))
        except Exception as error:
            connection.send(error)


def _host(driver: str) -> str:
    """Return the address of this machine on the way to the driver."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.connect((driver, 9))  # nothing is sent
        host: str = way.getsockname()[0]
    return host
