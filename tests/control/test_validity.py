"""An expiring certificate is reported in time."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ripple.cli.main import main
from ripple.control.telemetry.alerts import EXPIRY_S
from ripple.control.validity import SOON_S, Validity, watch
from ripple.core.errors import RippleError
from ripple.world import live_tls
from ripple.world.tls import Tls


def test_remaining_validity_follows_the_file(tmp_path: Path) -> None:
    assert main(["cert", "--dir", str(tmp_path), "--name", "w", "--days", "20"]) == 0
    path = str(tmp_path / "w.crt")
    shown = subprocess.run(
        ["openssl", "x509", "-in", path, "-noout", "-enddate", "-dateopt", "iso_8601"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    ends_s = live_tls.ends_s(path)
    now = [ends_s - SOON_S]
    validity = Validity(Tls(certificate=path, key="", authority=""), lambda: now[0])
    assert (validity.left_s, validity.concern) == (SOON_S, "")
    now[0] += 1
    assert "runs out in 13 days: replace it" in validity.concern
    now[0] = ends_s
    assert "has run out" in validity.concern
    assert datetime.fromtimestamp(ends_s, UTC).strftime("%F %TZ") in shown
    assert main(["cert", "--dir", str(tmp_path), "--name", "v", "--days", "40"]) == 0
    (tmp_path / "v.crt").replace(path)
    assert validity.left_s > 19 * 86_400
    assert SOON_S == EXPIRY_S


@pytest.mark.parametrize(
    "text", ["", "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----"]
)
def test_invalid_certificate_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "c").write_text(text)
    with pytest.raises(RippleError, match="/c: "):
        Validity(Tls(certificate=str(tmp_path / "c"), key="", authority=""), lambda: 0)


async def test_expiry_is_logged_daily_and_shown_always() -> None:
    concerns = ["", "13 days", "13 days", "12 days"]
    said, shown, validity = list[str](), list[str](), SimpleNamespace(concern="")

    async def sleep(_: float) -> None:
        if not concerns:
            raise EOFError
        validity.concern = concerns.pop(0)

    clock: Any = SimpleNamespace(sleep=sleep)
    with pytest.raises(EOFError):
        await watch(cast("Validity", validity), said.append, clock, shown.append)
    assert said == ["13 days", "12 days"]
    assert shown == ["", "", "13 days", "13 days", "12 days"]
