"""The page's third-party files, from npm's registry.

``python -m ripple.client.dashboard.assets`` fetches them into ``vendor/``, by
``package-lock.json``: pinned, with hashes, and without running scripts. A wheel contains them.
Imports nothing of Ripple, since ``setup.py`` loads this file by its path.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE / "page"
VENDOR = HERE / "vendor"
HOW = "make dashboard, or python -m ripple.client.dashboard.assets (npm is needed)"
# The files taken from each package, and their names here.
_PERSPECTIVE = "@perspective-dev"
TAKEN = {
    f"{_PERSPECTIVE}/client/dist/cdn/perspective.js": "perspective.js",
    f"{_PERSPECTIVE}/server/dist/wasm/perspective-server.wasm": "perspective-server.wasm",
    f"{_PERSPECTIVE}/viewer/dist/cdn/perspective-viewer.js": "perspective-viewer.js",
    f"{_PERSPECTIVE}/viewer/dist/wasm/perspective-viewer.wasm": "perspective-viewer.wasm",
    f"{_PERSPECTIVE}/viewer/dist/css/pro.css": "perspective-pro.css",
    f"{_PERSPECTIVE}/viewer/dist/css/pro-dark.css": "perspective-pro-dark.css",
    f"{_PERSPECTIVE}/viewer-datagrid/dist/cdn/perspective-viewer-datagrid.js": (
        "perspective-viewer-datagrid.js"
    ),
    f"{_PERSPECTIVE}/client/LICENSE.md": "perspective.LICENSE.txt",
    "@dagrejs/dagre/dist/dagre.esm.js": "dagre.js",
    "@dagrejs/dagre/LICENSE": "dagre.LICENSE.txt",
    "@dagrejs/dagre/dist/dagre.esm.js.LEGAL.txt": "dagre.LEGAL.txt",
    "htm/dist/htm.module.js": "htm.js",
    "htm/LICENSE": "htm.LICENSE.txt",
    "preact/dist/preact.mjs": "preact.js",
    "preact/hooks/dist/hooks.mjs": "hooks.js",
    "preact/LICENSE": "preact.LICENSE.txt",
    "uplot/dist/uPlot.iife.min.js": "uplot.js",
    "uplot/dist/uPlot.min.css": "uplot.css",
    "uplot/LICENSE": "uplot.LICENSE.txt",
}
# Without a build nothing resolves the bare name "preact", and source maps are not included.
_BARE = re.compile(r'(from|import) ?"preact"')
# The engine's files are in the same folder here.
_WASM = "../wasm/perspective-viewer.wasm"
_MAP = re.compile(r"^//# sourceMappingURL=.*$", re.MULTILINE)


class NotFetchedError(Exception):
    """Third-party files cannot be fetched; the message has the cause."""


def missing() -> list[str]:
    """Return the names of missing third-party files."""
    return [name for name in TAKEN.values() if not (VENDOR / name).is_file()]


def fetch(vendor: Path = VENDOR) -> None:
    """Fetch the third-party files. Raises NotFetchedError."""
    npm = shutil.which("npm")
    if npm is None:
        raise NotFetchedError("npm is not on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        install(npm, Path(folder), "--omit=dev")
        vendor.mkdir(parents=True, exist_ok=True)
        for path, name in TAKEN.items():
            data = (Path(folder) / "node_modules" / path).read_bytes()
            (vendor / name).write_bytes(data if name.endswith(".wasm") else _mended(data))


def _mended(data: bytes) -> bytes:
    text = _MAP.sub("", _BARE.sub(r'\1"./preact.js"', data.decode()))
    return text.replace(_WASM, "./perspective-viewer.wasm").encode()


def install(npm: str, folder: Path, *more: str) -> None:
    """Install the packages of the lock file into ``node_modules`` of a folder."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", *more]
    ended = subprocess.run(  # noqa: S603 - npm, with fixed arguments
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        lines = [line for line in ended.stderr.splitlines() if "error" in line.lower()]
        raise NotFetchedError(f"npm ci: {(lines or ['failed'])[0]}")


def main() -> int:
    """Fetch the files; return the exit code."""
    try:
        fetch()
    except NotFetchedError as error:
        sys.stderr.write(f"ripple.client.dashboard.assets: {error}\n")
        return 1
    sys.stdout.write(f"{VENDOR}: {', '.join(TAKEN.values())}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
