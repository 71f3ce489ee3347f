"""What becomes of tests whose service cannot be had."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


class MissingError(Exception):
    """A service cannot be had on this machine; the message says in one line what is missing."""


def skip(missing: MissingError) -> NoReturn:
    """Skip the test with the reason, where CI is not set: CI does have every service."""
    if os.environ.get("CI"):
        pytest.fail(f"a service is missing, which CI must have: {missing}")
    pytest.skip(str(missing))
