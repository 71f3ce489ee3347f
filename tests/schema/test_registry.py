"""A registry lets a subject change only as its mode allows, and survives on disk."""

from __future__ import annotations

import contextlib
import multiprocessing
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple import registry_file
from ripple.errors import LimitError, SchemaError
from ripple.schema import (
    Field,
    Float,
    Int,
    Int64,
    List,
    Option,
    Schema,
    String,
    check_backward,
    check_forward,
    registry,
)
from ripple.schema.fingerprint import fingerprint
from ripple.schema.registry import IncompatibleSchemaError, Mode, Registry, RegistryError
from tests.strategies import evolved, schemas

SYMBOL, PRICE = Field("symbol", String()), Field("price", Float())
VENUE, FEE = Field("venue", String(), optional=True), Field("fee", Float())


def trade(version: int, *fields: Field) -> Schema:
    return Schema("trade", fields, version)


# (mode, accepted after v1 [symbol price venue?] as v2)
ADD_REQUIRED = trade(2, SYMBOL, PRICE, VENUE, FEE)
REMOVE_OPTIONAL = trade(2, SYMBOL, PRICE)
ADD_OPTIONAL = trade(2, SYMBOL, PRICE, VENUE, Field("note", String(), optional=True))
FIRST = trade(1, SYMBOL, PRICE, VENUE)


@pytest.mark.parametrize(
    ("mode", "accepted"),
    [
        (Mode.NONE, {"required", "removed", "optional"}),
        (Mode.BACKWARD, {"removed", "optional"}),
        (Mode.BACKWARD_TRANSITIVE, {"removed", "optional"}),
        (Mode.FORWARD, {"required", "optional"}),
        (Mode.FORWARD_TRANSITIVE, {"required", "optional"}),
        (Mode.FULL, {"optional"}),
        (Mode.FULL_TRANSITIVE, {"optional"}),
    ],
)
def test_mode_decides_which_change_is_accepted(mode: Mode, accepted: set[str]) -> None:
    before = Registry(mode).register(FIRST)
    changes = {"required": ADD_REQUIRED, "removed": REMOVE_OPTIONAL, "optional": ADD_OPTIONAL}
    for name, schema in changes.items():
        if name in accepted:
            assert before.register(schema).latest("trade") == schema
        else:
            with pytest.raises(IncompatibleSchemaError) as caught:
                before.register(schema)
            assert caught.value.verdict.differences
            assert f"subject trade: mode {mode.value} does not allow v2 after v1" in str(
                caught.value
            )


@pytest.mark.parametrize("mode", [Mode.BACKWARD, Mode.BACKWARD_TRANSITIVE])
def test_only_transitive_mode_looks_behind_the_latest(mode: Mode) -> None:
    # v1 writes venue as text; v2 forgets it; v3 has it again as a number.
    third = trade(3, SYMBOL, Field("venue", Int(), optional=True))
    both = Registry(mode).register(trade(1, SYMBOL, VENUE)).register(trade(2, SYMBOL))
    if mode is Mode.BACKWARD:
        assert both.register(third).latest("trade") == third
    else:
        with pytest.raises(IncompatibleSchemaError, match=r"v3 after v1.*trade\.venue"):
            both.register(third)


def test_unchanged_version_needs_full_compatibility() -> None:
    known = Registry(Mode.BACKWARD).register(FIRST)
    grown = trade(1, *ADD_OPTIONAL.fields)
    assert known.register(grown).subject("trade").schemas == (FIRST, grown)
    with pytest.raises(IncompatibleSchemaError, match="an unchanged version does not allow v1"):
        known.register(trade(1, SYMBOL, PRICE))
    assert Registry(Mode.NONE).register(FIRST).register(trade(1, SYMBOL)).latest("trade")


def test_version_never_goes_down() -> None:
    with pytest.raises(SchemaError, match="version 1 comes after 2"):
        Registry(Mode.NONE).register(ADD_OPTIONAL).register(FIRST)


def test_known_schema_registers_again_without_effect() -> None:
    known = Registry().register(FIRST).register(ADD_OPTIONAL)
    assert known.register(FIRST) is known


def test_mode_of_a_subject_can_change() -> None:
    known = Registry(Mode.FULL).register(FIRST).with_mode("trade", Mode.FORWARD)
    assert known.register(ADD_REQUIRED).latest("trade") == ADD_REQUIRED
    assert known.latest("other") is None


def test_fingerprint_finds_every_order_of_a_schema() -> None:
    swapped = trade(1, PRICE, SYMBOL, VENUE)
    known = Registry().register(FIRST).register(swapped)
    assert known.by_fingerprint(fingerprint(FIRST)) == (FIRST, swapped)
    assert known.by_fingerprint("0" * 16) == ()


def test_registry_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "SCHEMAS_MAX", 2)
    full = Registry(Mode.NONE).register(FIRST).register(ADD_OPTIONAL)
    with pytest.raises(LimitError, match="SCHEMAS_MAX"):
        full.register(trade(3, SYMBOL))


@given(st.data(), schemas(refs=True), st.sampled_from(Mode))
def test_accepted_versions_keep_the_promise_of_their_mode(
    data: st.DataObject, schema: Schema, mode: Mode
) -> None:
    known = Registry(mode)
    for _ in range(3):
        with contextlib.suppress(IncompatibleSchemaError):
            known = known.register(schema)
        latest = known.latest(schema.name)
        assert latest is not None
        schema = data.draw(evolved(latest))
    history = known.subject(schema.name).schemas
    every = mode.name.endswith("TRANSITIVE")
    for later in range(1, len(history)):
        for earlier in range(0 if every else later - 1, later):
            if mode.name.startswith(("BACKWARD", "FULL")):
                assert check_backward(history[later], history[earlier])
            if mode.name.startswith(("FORWARD", "FULL")):
                assert check_forward(history[earlier], history[later])
    assert registry.loads(registry.dumps(known)) == known


def test_listing_has_the_shape_of_inspect_schemas() -> None:
    known = (
        Registry()
        .register(
            Schema(
                "vwap",
                (SYMBOL, Field("vwap", Float()), Field("total_volume", Int())),
            )
        )
        .register(
            Schema(
                "trade",
                (
                    SYMBOL,
                    PRICE,
                    Field("timestamp_ns", Int64()),
                    Field("venue", String(), optional=True),
                    Field("tags", List(Option(String()))),
                ),
            )
        )
    )
    assert registry.listing(known, verbose=True) == (
        "Registered Schemas\n"
        "----------------------------------------------------\n"
        "  trade/v1  fp=TRADE_FP  fields=5\n"
        "    symbol        : String                 (required)\n"
        "    price         : Float                  (required)\n"
        "    timestamp_ns  : Int64                  (required)\n"
        "    venue         : String                 (optional)\n"
        "    tags          : (List(Option String))  (required)\n"
        "\n"
        "  vwap/v1   fp=VWAP_FP  fields=3\n"
        "    symbol        : String    (required)\n"
        "    vwap          : Float     (required)\n"
        "    total_volume  : Int       (required)\n"
    ).replace("TRADE_FP", fingerprint(known.latest("trade"))).replace(  # type: ignore[arg-type]
        "VWAP_FP",
        fingerprint(known.latest("vwap")),  # type: ignore[arg-type]
    )
    assert registry.listing(known).splitlines()[2:] == [
        f"  trade/v1  fp={fingerprint(known.latest('trade'))}  fields=5",  # type: ignore[arg-type]
        f"  vwap/v1   fp={fingerprint(known.latest('vwap'))}  fields=3",  # type: ignore[arg-type]
    ]
    assert registry.listing(Registry()) == "Registered Schemas\n" + "-" * 52 + "\n"


def test_listing_cannot_be_used_to_write_to_a_terminal() -> None:
    known = Registry().register(Schema("a\x1b[2J", (Field("x\ny", Int()),)))
    assert "\x1b" not in registry.listing(known, verbose=True)
    assert len(registry.listing(known, verbose=True).splitlines()) == 4


# On disk -----------------------------------------------------------------------------------------


def test_file_keeps_what_was_registered(tmp_path: Path) -> None:
    path = tmp_path / "schemas.json"
    assert registry_file.load(path) == Registry()
    after = registry_file.update(path, lambda known: known.register(FIRST))
    assert registry_file.load(path) == after == Registry().register(FIRST)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["schemas.json", "schemas.json.lock"]


def test_file_keeps_its_permissions_and_nothing_beside_it_is_emptied(tmp_path: Path) -> None:
    path, mine = tmp_path / "schemas.json", tmp_path / "mine"
    mine.write_text("important")
    (tmp_path / "schemas.json.lock").write_text("mine too")
    (tmp_path / "schemas.json.new").symlink_to(mine)
    registry_file.update(path, lambda known: known.register(FIRST))
    path.chmod(0o600)
    registry_file.update(path, lambda known: known.register(FIRST, "other"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "schemas.json.lock").read_text() == "mine too"
    assert mine.read_text() == "important"
    (tmp_path / "schemas.json.lock").unlink()
    (tmp_path / "schemas.json.lock").symlink_to(mine)
    with pytest.raises(RegistryError, match=r"cannot be written: .*lock: Too many levels"):
        registry_file.update(path, lambda known: known.register(FIRST, "third"))


def test_refused_change_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "schemas.json"
    registry_file.update(path, lambda known: known.register(FIRST))
    before = path.read_bytes()
    with pytest.raises(IncompatibleSchemaError):
        registry_file.update(path, lambda known: known.register(ADD_REQUIRED))
    assert path.read_bytes() == before


def test_every_flipped_byte_and_truncation_is_reported_and_the_file_left(tmp_path: Path) -> None:
    path = tmp_path / "schemas.json"
    known = registry_file.update(path, lambda known: known.register(FIRST))
    whole = path.read_bytes()
    damaged = [whole[:cut] for cut in range(0, len(whole) - 1, 7)]
    damaged += [
        whole[:position] + bytes([whole[position] ^ 0x04]) + whole[position + 1 :]
        for position in range(len(whole))
    ]
    for data in damaged:
        path.write_bytes(data)
        found, problem = _try_load(path)
        if problem is None:
            # Some flips of white space leave the meaning as it was.
            assert found == known
        else:
            assert "was left as it is" in problem
            with pytest.raises(RegistryError):
                registry_file.update(path, lambda known: known.register(ADD_OPTIONAL))
        assert path.read_bytes() == data


def _try_load(path: Path) -> tuple[Registry | None, str | None]:
    try:
        return registry_file.load(path), None
    except RegistryError as error:
        return None, str(error)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", "[" * 100_000, '{"format": "other", "checksum": "", "registry": {}}'],
)
def test_document_that_is_no_registry_is_refused(text: str) -> None:
    with pytest.raises(RegistryError):
        registry.loads(text)


def test_file_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "schemas.json"
    path.write_bytes(b" " * 101)
    monkeypatch.setattr(registry, "DOCUMENT_BYTES_MAX", 100)
    with pytest.raises(RegistryError, match="DOCUMENT_BYTES_MAX"):
        registry_file.load(path)


def test_unwritable_place_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="cannot be read"):
        registry_file.load(tmp_path)
    with pytest.raises(RegistryError, match="must be there and writable"):
        registry_file.update(tmp_path / "no" / "schemas.json", lambda known: known)


def register_many(path: Path, subject: int) -> None:
    for version in range(1, 6):
        schema = Schema(f"s{subject}", (SYMBOL,), version)
        registry_file.update(path, partial(Registry.register, schema=schema))


def test_processes_that_register_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "schemas.json"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=register_many, args=(path, n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    known = registry_file.load(path)
    assert {name: len(s.schemas) for name, s in known.subjects.items()} == {
        "s0": 5,
        "s1": 5,
        "s2": 5,
    }
