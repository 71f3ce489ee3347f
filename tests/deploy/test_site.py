"""The docs become a site: each page has its place, all links lead somewhere."""

from __future__ import annotations

import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

import ripple
from tests.deploy import site
from tests.deploy.compose import ROOT
from tests.services.missing import MissingError, skip


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    site.lay_out(folder)
    return folder


def test_each_page_and_each_public_name_is_there(laid: Path) -> None:
    pages = {path.name for path in (laid / "docs").iterdir()}
    assert {path.name for path in (ROOT / "docs").glob("*.md")} < pages
    assert {"index.md", "architecture.md", "bench.md"} < pages
    builder = runpy.run_path(str(ROOT / "docs/site/build.py"))
    for name, (_, modules) in builder["REFERENCE"].items():
        text = (laid / "docs" / name).read_text()
        names = {
            one for module in modules for one in builder["public_names"](import_module(module))
        }
        assert names == set(re.findall(r"^## (\w+)$", text, re.MULTILINE))
        assert " at 0x" not in text


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("connectors", "BasicSink"),
        ("connectors", "Inputs"),
        ("connectors", "Connector"),
        ("aggregates", "Aggregate"),
        ("aggregates", "PartsState"),
        ("client", "Observer"),
        ("testing", "check_pipeline"),
    ],
)
def test_the_sdk_is_in_the_reference(laid: Path, page: str, name: str) -> None:
    assert f"## {name}\n" in (laid / f"docs/reference-{page}.md").read_text()


def test_the_reference_says_what_docstrings_say(laid: Path) -> None:
    text = (laid / "docs/reference.md").read_text()
    said = (ripple.Pipeline.derive.__doc__ or "").splitlines()[0].replace("``", "`")
    assert "### Pipeline.derive\n\n```python\nPipeline.derive(self, name: str" in text
    assert said in text


@pytest.mark.deploy
def test_site_is_built_without_warnings_and_a_dead_link_is_one(laid: Path) -> None:
    try:
        made = site.make(laid)
    except MissingError as error:
        skip(error)
    assert "Ten minutes" in (made / "tutorial.html").read_text()
    assert 'id="pipeline"' in (made / "reference.html").read_text()
    page = laid / "docs/tutorial.md"
    page.write_text(f"{page.read_text()}\n[gone](nowhere.md)\n")
    with pytest.raises(AssertionError, match="page does not exist"):
        site.make(laid)
