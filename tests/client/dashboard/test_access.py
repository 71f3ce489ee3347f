"""Roles: a file says who may do what, and is refused where it says something else."""

from __future__ import annotations

import pytest

from ripple.core.access import (
    NOBODY,
    RIGHTS,
    AccessError,
    Caller,
    Known,
    Right,
    Role,
    access_of,
)

TOKENS = {role: role.value[0] * 32 for role in Role if role is not Role.NOBODY}
FILE = "\n".join(f'[{role.value}.tokens]\nof-{role.value} = "{t}"' for role, t in TOKENS.items())
FILE += '\n[guest.outputs]\nof-guest = ["vwap"]'
NAMES = '\n[operator]\ncertificates = ["bob", "worker"]\n'


def test_a_token_gives_its_role_and_its_name() -> None:
    access = access_of(FILE.encode(), "roles")
    for role, token in TOKENS.items():
        outputs = frozenset({"vwap"} if role is Role.GUEST else ())
        assert access.known(Caller(token)) == Known(role, f"of-{role.value}", outputs)
    for wrong in ("", "r" * 31, "r" * 33, "R" * 32, "r" * 100_000, "ü" * 32, "\udcff" * 32):
        assert access.known(Caller(wrong)) == NOBODY
    assert access.known(Caller()) == NOBODY


def test_a_certificate_gives_its_role_and_the_most_of_both_counts() -> None:
    access = access_of(f'[reader.tokens]\nr = "{"r" * 32}"{NAMES}'.encode(), "roles")
    assert access.known(Caller(certificates=("bob",))) == Known(Role.OPERATOR, "bob")
    assert access.known(Caller("r" * 32, ("bob",))).role is Role.OPERATOR
    assert access.known(Caller("r" * 32, ("eve",))).role is Role.READER
    assert access.known(Caller(certificates=("eve", "coordinator"))).role is Role.PROCESS
    assert access.known(Caller(certificates=("worker",))).role is Role.OPERATOR


def test_processes_are_those_that_ripple_cert_names_unless_it_is_said() -> None:
    usual = access_of(b"", "roles")
    named = access_of(b'[process]\ncertificates = ["w7"]', "roles")
    for access, names in ((usual, {"worker", "coordinator"}), (named, {"w7"})):
        for name in ("worker", "coordinator", "w7"):
            is_process = access.known(Caller(certificates=(name,))).role is Role.PROCESS
            assert is_process == (name in names)


def test_a_process_commands_nothing_and_people_take_no_part() -> None:
    assert RIGHTS[Role.NOBODY] == RIGHTS[Role.GUEST] == set()
    assert RIGHTS[Role.READER] < RIGHTS[Role.OPERATOR] < RIGHTS[Role.ADMIN]
    assert not RIGHTS[Role.PROCESS] & {Right.OPERATE, Right.ADMINISTER}
    assert Right.TAKE_PART not in RIGHTS[Role.OPERATOR]


def test_a_guest_reads_its_outputs_alone_unless_a_certificate_gives_more() -> None:
    said = f'[guest.tokens]\ng = "{"g" * 32}"\n[guest.outputs]\ng = ["vwap"]\neve = ["fills"]'
    said += f'\n[guest]\ncertificates = ["eve"]{NAMES}'
    access = access_of(said.encode(), "roles")
    guest = access.known(Caller("g" * 32))
    assert [guest.reads(output) for output in ("vwap", "fills")] == [True, False]
    assert access.known(Caller(certificates=("eve",))).reads("fills")
    more = access.known(Caller("g" * 32, ("bob",)))
    assert more.role is Role.OPERATOR
    assert more.reads("fills")
    assert not NOBODY.reads("vwap")


@pytest.mark.parametrize(
    ("file", "what"),
    [
        (f'[guest.tokens]\ng = "{"g" * 32}"', "has no outputs of g: name those that it may read"),
        (f'[guest.tokens]\ng = "{"g" * 32}"\n[guest.outputs]\ng = []', "g has no outputs: name"),
        ('[guest.outputs]\ng = "vwap"', "g is no list of names"),
        ('[guest]\noutputs = ["vwap"]', "is no table of names and outputs"),
        ('[guest.outputs]\ng = ["vwap"]', "has g, which is no guest: give it a token in"),
        ('[reader.outputs]\nr = ["vwap"]', "has outputs, an unknown key"),
        ('[reader]\ncertificates = ["localhost"]', "every certificate of a machine may name"),
        ("[visitor]", "visitor, which is none of"),
        ("reader = 1", "reader, which is none of"),
        ("[reader]\nusers = []", "users, an unknown key"),
        ('[reader.tokens]\na = "short"', "has 5 characters, not 32 to 512"),
        (f'[reader.tokens]\na = "{"ü" * 32}"', "no text of plain characters"),
        ("[reader.tokens]\na = 5", "no text of plain characters"),
        ("[reader]\ntokens = 5", "no table"),
        ('[reader]\ncertificates = "bob"', "no list of names"),
        (
            '[reader]\ncertificates = ["bob"]\n[admin]\ncertificates = ["bob"]',
            "certificate of bob two roles",
        ),
        (f'[reader.tokens]\na = "{"x" * 32}"\nb = "{"x" * 32}"', "b has the token of a"),
    ],
)
def test_invalid_roles_file_is_named(file: str, what: str) -> None:
    with pytest.raises(AccessError, match=what):
        access_of(file.encode(), "roles.toml")


def test_no_message_holds_a_token() -> None:
    token = "s3cret-" * 6
    for file in (f'[reader.tokens]\na = "{token}', f'[reader.tokens]\na = "{token * 20}"'):
        with pytest.raises(AccessError) as caught:
            access_of(file.encode(), "roles.toml")
        assert "s3cret" not in str(caught.value)
    for bad in (b"\xff", b"#" * ((1 << 20) + 1)):
        with pytest.raises(AccessError):
            access_of(bad, "roles.toml")
