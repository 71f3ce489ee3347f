from __future__ import annotations

import sys
from pathlib import Path

import pytest

import ripple
from ripple.core.uncompiled import Uncompiled


def test_module_with_a_source_alone_says_how_it_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Uncompiled in sys.meta_path
    (tmp_path / "fresh.pyx").touch()
    monkeypatch.setattr(ripple, "__path__", [str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match=r"^ripple\.fresh is not compiled: run 'make"):
        __import__("ripple.fresh")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'ripple\.absent'$"):
        __import__("ripple.absent")
