"""Stores by their place, and the proof that the first put wins."""

from __future__ import annotations

import asyncio
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from ripple.cli.lib.path_options import a_store
from ripple.core.setting import SettingsError
from ripple.storage.store import DiskStore, MemoryStore, StoreRefusedError, UnsafeStoreError
from ripple.storage.store.opening import open_store
from ripple.storage.store.probe import probe
from ripple.storage.store.s3_settings import S3Settings, split_url
from ripple.testing import Chance


async def test_a_folder_is_made_unless_it_is_only_read(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "a"), S3Settings(), is_probed=True) as store:
        assert isinstance(store, DiskStore)
        assert await store.put_if_absent("x.bin", b"1")
    async with open_store(str(tmp_path / "b"), S3Settings(), is_read=True) as store:
        assert await store.list("") == []
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://bucket", ("bucket", "")),
        ("s3://bucket/", ("bucket", "")),
        ("s3://bucket/a/b/", ("bucket", "a/b")),
    ],
)
def test_a_place_in_s3_has_a_bucket_and_a_prefix(url: str, expected: tuple[str, str]) -> None:
    assert split_url(url) == expected


@pytest.mark.parametrize("url", ["s3://", "s3:///a", "s3://bucket/a//b"])
def test_a_place_that_is_none_is_named(url: str) -> None:
    with pytest.raises(SettingsError, match=url):
        split_url(url)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"RIPPLE_S3_ENDPOINT": "ftp://a"}, "ftp://a"),
        ({"RIPPLE_S3_ENDPOINT": "http://"}, "not http"),
        ({"RIPPLE_S3_ADDRESSING": "sideways"}, "sideways"),
        ({"RIPPLE_S3_KMS_KEY": "ours"}, "not aws:kms"),
    ],
)
def test_settings_that_can_never_work_are_named(variables: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        S3Settings.of_environment(variables)


def test_a_password_in_an_endpoint_is_refused_and_not_shown() -> None:
    with pytest.raises(SettingsError, match="AWS chain") as caught:
        S3Settings(endpoint="https://user:secret@host")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("place", ["gs://bucket/prefix", ""])
def test_a_place_of_another_kind_is_refused_before_a_folder_is_made(place: str) -> None:
    with pytest.raises(ArgumentTypeError):
        a_store(place)


@pytest.mark.parametrize("place", ["taken", "taken/below"])
async def test_a_file_where_the_folder_would_be_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "taken").write_text("somebody's")

    with pytest.raises(
        StoreRefusedError, match=f"{place} cannot be a store, for a file stands there"
    ):
        async with open_store(str(tmp_path / place), S3Settings()):
            pass
    assert (tmp_path / "taken").read_text() == "somebody's"


async def test_failed_probe_reports_its_own_error_and_not_that_of_the_cleanup() -> None:
    class Denying(MemoryStore):
        async def put_if_absent(self, name: str, data: bytes) -> bool:
            raise StoreRefusedError(f"put {name}: denied")

        async def delete(self, name: str) -> None:
            raise StoreRefusedError(f"delete {name}: denied")

    with pytest.raises(StoreRefusedError, match="put probe/"):
        await probe(Denying(), Chance(), "here")


async def test_a_store_that_keeps_its_promise_passes_and_is_left_clean() -> None:
    store = MemoryStore()
    await probe(store, Chance(), "here")
    assert await store.list("") == []


class Replacing(MemoryStore):
    async def put_if_absent(self, name: str, data: bytes) -> bool:
        self._objects[name] = data
        return True


class Racing(MemoryStore):
    """Looks first and stores later: of those who race, all win."""

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        is_there = name in self._objects
        await asyncio.sleep(0)
        if not is_there:
            self._objects[name] = data
        return not is_there


class Lying(MemoryStore):
    """Says that it has not stored what it has."""

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        is_there = name in self._objects
        self._objects[name] = data
        return not is_there


class Late(MemoryStore):
    async def list(self, prefix: str) -> list[str]:
        return []


@pytest.mark.parametrize(
    ("store", "said"),
    [
        (Replacing(), "lets a second put replace the first"),
        (Racing(), "lets a second put replace the first"),
        (Lying(), "lets a second put replace the first"),
        (Late(), "does not list an object right after its put"),
    ],
)
async def test_store_that_breaks_its_promise_is_refused_by_name(
    store: MemoryStore, said: str
) -> None:
    with pytest.raises(UnsafeStoreError, match=f"here {said}"):
        await probe(store, Chance(), "here")
