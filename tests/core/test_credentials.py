"""Credentials of data ports: each is good for its purpose alone."""

from __future__ import annotations

import pytest

from ripple.core.access import AccessError, Role
from ripple.core.credentials import READS_S, Credentials, Proven, Side

OURS, OTHERS = Credentials(b"k" * 32), Credentials(b"o" * 32)
SHOWN = OURS.of_process("w1/0", Side.CONNECTS, "its digest")


def test_a_process_proves_its_name_and_is_let_in() -> None:
    found = OURS.proven(SHOWN, "w1/0", Side.CONNECTS, "its digest", 0)
    assert found == Proven(Role.PROCESS)


@pytest.mark.parametrize(
    ("who", "side", "binding", "ours"),
    [
        ("w2/0", Side.CONNECTS, "its digest", OURS),
        ("w1/0", Side.ACCEPTS, "its digest", OURS),
        ("w1/0", Side.CONNECTS, "another listener's", OURS),
        ("w1/0", Side.CONNECTS, "its digest", OTHERS),
    ],
)
def test_credential_proves_one_name_only(
    who: str, side: Side, binding: str, ours: Credentials
) -> None:
    with pytest.raises(AccessError, match="cannot prove to be"):
        ours.proven(SHOWN, who, side, binding, 0)


def test_a_reader_reads_for_an_hour() -> None:
    shown = OURS.of_reader(1000)
    until_s = 1000 + READS_S
    assert OURS.proven(shown, "anybody", Side.CONNECTS, "", until_s - 1) == Proven(
        Role.READER, until_s
    )
    with pytest.raises(AccessError, match="has run out"):
        OURS.proven(shown, "anybody", Side.CONNECTS, "", until_s)
    with pytest.raises(AccessError, match="not of this cluster"):
        OTHERS.proven(shown, "anybody", Side.CONNECTS, "", 1000)
    with pytest.raises(AccessError, match="not of this cluster"):
        OURS.proven(shown.replace(str(until_s), str(until_s + 1)), "", Side.CONNECTS, "", 1000)


@pytest.mark.parametrize(
    "shown", ["", "admin", "process", "reader x", "process \u00e9\ud800", "\0"]
)
def test_other_credentials_are_refused(shown: str) -> None:
    with pytest.raises(AccessError):
        OURS.proven(shown, "w1/0", Side.CONNECTS, "", 0)


def test_a_short_key_is_none() -> None:
    with pytest.raises(AccessError, match="not 32"):
        Credentials(b"k")
