"""Every method of gRPC over TLS: a certificate is let in as roles name it, and no other one is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.service.handlers import Handlers
from ripple.core.access import Role, access_of
from ripple.world import Tls
from ripple.world.control import (
    UNKNOWN_CALLER,
    DeadlineError,
    RefusedError,
    Service,
    UnreachableError,
)
from ripple.world.live_control import LiveChannel, LiveControl
from tests.client.dashboard.callers import METHODS, TOKENS, WRONG
from tests.patience import PATIENCE_S
from tests.world.certificates import LiveCertificates
from tests.world.control_contract import echo

ROLES = f"""
[reader]
certificates = ["grafana"]
[operator.tokens]
oscar = "{TOKENS[Role.OPERATOR]}"
"""
# Who shows what: a certificate, a token, and what that makes of them.
SHOWN = [
    ("mallory", "", Role.NOBODY),
    ("mallory", WRONG, Role.NOBODY),
    ("mallory", TOKENS[Role.OPERATOR], Role.OPERATOR),
    ("grafana", "", Role.READER),
    ("grafana", TOKENS[Role.OPERATOR], Role.OPERATOR),  # the greater one of both
    ("worker", "", Role.PROCESS),
]


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tls]:
    made = LiveCertificates(tmp_path_factory.mktemp("certificates"))
    found = {name: made.issue(name) for name in ("coordinator", "mallory", "grafana", "worker")}
    theirs = made.issue("worker", "other")
    return found | {"stranger": replace(theirs, authority=found["worker"].authority)}


async def _let_in(channel: LiveChannel, method: str, request: bytes, *, converses: bool) -> str:
    """Return "" for who is let in, else the reason."""
    try:
        if converses:
            conversation = await channel.open(method, deadline_s=PATIENCE_S)
            await conversation.finish()
            await conversation.receive()
        else:
            await channel.call(method, request, deadline_s=PATIENCE_S)
    except RefusedError as error:
        return error.reason
    return ""


def _service() -> Service:
    """Return the coordinator's methods, of which this test knows only who is let in."""

    async def answer(request: bytes) -> bytes:
        return request

    desk = Handlers.__new__(Handlers)
    desk._access = access_of(ROLES.encode(), "roles")
    ours = desk.service
    calls, conversations = (
        dict.fromkeys(ours.calls, answer),
        dict.fromkeys(ours.conversations, echo),
    )
    return Service(calls, conversations, allows=ours.allows)


async def test_each_method_lets_in_whom_the_certificate_names(issued: dict[str, Tls]) -> None:
    service = _service()
    server = await LiveControl().serve("localhost:0", service, tls=issued["coordinator"])
    for name, token, role in SHOWN:
        channel = LiveControl(token).channel(server.address, tls=issued[name])
        for method, request, allowed in METHODS:
            converses = method in service.conversations
            why = await _let_in(channel, method, request, converses=converses)
            assert (why == "") == (role in allowed), (name, token, method, request, why)
            assert (why == UNKNOWN_CALLER) == (role is Role.NOBODY), (name, method, why)
        await channel.close()
    await server.close()


@pytest.mark.parametrize("shown", ["stranger", "none"])
async def test_unknown_certificate_is_refused_at_the_handshake(
    issued: dict[str, Tls], shown: str
) -> None:
    """Nor with the name and the token of somebody who may do everything."""
    heard = []

    def allows(method: str, *_: object) -> None:
        heard.append(method)

    server = await LiveControl().serve(
        "localhost:0", replace(_service(), allows=allows), tls=issued["coordinator"]
    )
    channel = LiveControl(TOKENS[Role.OPERATOR]).channel(server.address, tls=issued.get(shown))
    for method, request, _ in METHODS[:3]:
        with pytest.raises((UnreachableError, DeadlineError)):
            await channel.call(method, request, deadline_s=5)
    await channel.close()
    await server.close()
    assert not heard
