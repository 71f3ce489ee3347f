"""What a commit asks of the disk, over and over, until standard input ends; it prints when."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from bench.running import COMMIT_MS

CHANGES = bytes(20_000)
RECORD = bytes(300)


def main(folder: Path) -> None:
    folder.mkdir()
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    wrote_s = []
    with (folder / "log").open("ab", buffering=0) as log:
        while not ended.wait(COMMIT_MS / 1000):
            wrote_s.append(time.monotonic())
            log.write(CHANGES)
            os.fsync(log.fileno())
            with (folder / "record.tmp").open("wb", buffering=0) as record:
                record.write(RECORD)
                os.fsync(record.fileno())
            (folder / "record.tmp").replace(folder / "record")
            names = os.open(folder, os.O_RDONLY)
            os.fsync(names)
            os.close(names)
    print(*wrote_s, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
