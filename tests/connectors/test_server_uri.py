"""One grammar for the servers of URIs, whatever the system."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from ripple.connectors.nats.uri import LIFTBRIDGE, SUBJECT, NatsUri
from ripple.connectors.postgres.uri import PostgresUri
from ripple.connectors.redis.uri import RedisUri
from ripple.connectors.server_uri import ServerUri
from ripple.connectors.websocket.uri import Feed
from ripple.core.errors import InputError, OutputError


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("trades", ("", "", "", "trades")),
        ("//db/trades", ("", "db", "", "trades")),
        ("//me@db:5432/a/b", ("me", "db", "5432", "a/b")),
        ("//[::1]:6379/s", ("", "[::1]", "6379", "s")),
        ("///shop/trades", ("", "", "", "shop/trades")),
        ("//db", ("", "db", "", "")),
        ("//a:b:1/s", None),
        ("//[::1/s", None),
        ("//db:123456/s", None),
        ("//me:secret@db/s", None),
    ],
)
def test_server_and_name_are_told_apart(path: str, parts: tuple[str, ...] | None) -> None:
    found = ServerUri.parse(path)
    assert (found if parts is None else tuple(found or ())) == parts


@pytest.mark.parametrize(
    ("parse", "path", "shown"),
    [
        (NatsUri.parse, "s", "nats://127.0.0.1:4222/s"),
        (NatsUri.parse, "//[::1]/s", "nats://[::1]:4222/s"),
        (lambda path: NatsUri.parse(path, SUBJECT), "//h:1/a.*.>", "nats-subject://h:1/a.*.>"),
        (lambda path: NatsUri.parse(path, LIFTBRIDGE), "//h/a.b", "liftbridge://h:4222/a.b"),
        (RedisUri.parse, "//h/a%2Fb", "redis://h:6379/a%2Fb"),
        (PostgresUri.parse, "//me@[::1]:1/d/a.t", "postgres://me@[::1]:1/d/a.t"),
        (PostgresUri.parse, "///d/t", "postgres:///d/t"),
        (lambda path: Feed.parse("wss", path).url, "//h:1/a/b?c=1", "wss://h:1/a/b?c=1"),
        (lambda path: Feed.parse("ws", path).url, "//h", "ws://h"),
    ],
)
def test_uris_of_systems_are_as_they_are_written(
    parse: Callable[[str], object], path: str, shown: str
) -> None:
    assert str(parse(path)) == shown


@pytest.mark.parametrize(
    ("parse", "path"),
    [
        (NatsUri.parse, "//h/a/b"),
        (NatsUri.parse, "///a"),
        (RedisUri.parse, "//h:x/a"),
        (RedisUri.parse, "//h/a b"),
        (PostgresUri.parse, "//h/d"),
        (PostgresUri.parse, "//h/d/s/t"),
        (lambda path: Feed.parse("ws", path), "//me@h/a"),
        (lambda path: Feed.parse("ws", path), "///a"),
    ],
)
def test_other_forms_are_refused_with_the_right_one(
    parse: Callable[[str], object], path: str
) -> None:
    with pytest.raises(
        (InputError, OutputError), match=r"cannot tell which .*it must be"
    ) as raised:
        parse(path)
    assert re.search(re.escape(path.rpartition("@")[2]), str(raised.value))
