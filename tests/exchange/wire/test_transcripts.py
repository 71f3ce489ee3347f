"""Conversations as readable text: what is said, what it leads to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.exchange.wire.transcript import Transcript

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_conversation_goes_as_written(path):
    written = path.read_text()
    happened = Transcript().run(written)
    if os.environ.get("RIPPLE_REWRITE"):
        path.write_text(happened)
    assert happened == written or os.environ.get("RIPPLE_REWRITE")


def test_transcripts_are_found():
    assert len(TRANSCRIPTS) >= 9
