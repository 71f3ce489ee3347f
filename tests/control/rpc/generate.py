"""``python -m tests.control.rpc.generate``: the modules of messages, made of ``proto/``.

protoc puts a module where its .proto file lies; ours live where they are used, and are imported
from there.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[3]
# By folder below proto/, the folder of the modules.
FOLDERS = {
    "ripple/rpc": "ripple/control/rpc",
    "ripple/flight/barrage": "ripple/client/flight/barrage",
    "ripple/flight/messages": "ripple/client/flight/messages",
}


def sources() -> list[str]:
    """Return the .proto files, by their paths below ``proto/``."""
    return sorted(
        path.relative_to(ROOT / "proto").as_posix() for path in ROOT.glob("proto/**/*.proto")
    )


def generated() -> dict[str, str]:
    """Return the text of each module, by its path below the root."""
    with TemporaryDirectory() as folder:
        outputs = [f"--python_out={folder}", f"--pyi_out={folder}"]
        subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", "--proto_path=proto", *outputs, *sources()],
            check=True,
            cwd=ROOT,
        )
        made = sorted(Path(folder).rglob("*_pb2.py*"))
        return {
            f"{FOLDERS[path.parent.relative_to(folder).as_posix()]}/{path.name}": _moved(
                path.read_text()
            )
            for path in made
        }


def _moved(text: str) -> str:
    """Return a module that imports the others from where they live."""
    for below_proto, folder in FOLDERS.items():
        package = re.escape(below_proto.replace("/", "."))
        text = re.sub(
            rf"^from {package} import", f"from {folder.replace('/', '.')} import", text, flags=re.M
        )
    return text


def main() -> None:
    """Write all of them."""
    for path, text in generated().items():
        (ROOT / path).write_text(text)


if __name__ == "__main__":
    main()
