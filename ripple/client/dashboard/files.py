"""The static files of the page."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from ripple.client.dashboard.assets import PAGE, VENDOR

if TYPE_CHECKING:
    from pathlib import Path

TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".wasm": "application/wasm",
}


class File(NamedTuple):
    """A file. tag: of its content, for caching."""

    body: bytes
    type: str
    tag: str


def files() -> dict[str, File]:
    """Return the files of the page, by their URL paths."""
    return {
        prefix + path.relative_to(folder).as_posix(): _file(path)
        for folder, prefix in ((PAGE, ""), (VENDOR, "vendor/"))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in TYPES
    }


def _file(path: Path) -> File:
    body = path.read_bytes()
    return File(body, TYPES[path.suffix], f'"{sha256(body).hexdigest()[:16]}"')
