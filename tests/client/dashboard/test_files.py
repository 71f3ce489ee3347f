"""The files of others, which somebody fetches while a dashboard is there already."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from ripple.cli.cluster.dashboard import missing_files_hint
from ripple.client.dashboard import assets, files
from ripple.client.dashboard.gate import Gate
from ripple.client.dashboard.web import Dashboard
from ripple.world import LiveClock
from tests.client.dashboard.counted import Counted


@pytest.fixture
def vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the files of others are to be; none is there."""
    for module in (assets, files):
        monkeypatch.setattr(module, "VENDOR", tmp_path)
    return tmp_path


def fetched(vendor: Path, last: int | None = None) -> None:
    for name in list(assets.TAKEN.values())[:last]:
        (vendor / name).write_text(name)


@pytest.mark.filterwarnings("ignore:It is recommended to use web.RequestKey")
async def test_the_page_is_there_as_soon_as_all_its_files_are(vendor: Path) -> None:
    dashboard = Dashboard(Counted(), Gate(None, lambda: ""), LiveClock())
    await dashboard.start("127.0.0.1:0")
    try:
        async with aiohttp.ClientSession(dashboard.address) as session:

            async def got(path: str) -> tuple[int, str]:
                async with session.get(path) as answer:
                    return answer.status, await answer.text()

            for last in (0, -1):
                fetched(vendor, last)
                status, said = await got("/")
                assert status == 503
                assert assets.HOW in said
            fetched(vendor)
            assert (await got("/"))[0] == 200
            for name in assets.TAKEN.values():
                if not name.endswith(".wasm"):
                    assert await got(f"/page/vendor/{name}") == (200, name)
    finally:
        await dashboard.close()


def test_missing_page_files_are_reported_with_the_command_that_fetches_them(vendor: Path) -> None:
    assert assets.HOW in missing_files_hint()
    fetched(vendor)
    assert missing_files_hint() == ""
