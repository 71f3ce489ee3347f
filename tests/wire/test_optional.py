from __future__ import annotations

import subprocess
import sys


def test_ripple_imports_without_the_wires_packages() -> None:
    script = (
        "import sys\n"
        "for name in ('crc32c', 'lz4', 'zstandard'): sys.modules[name] = None\n"
        "import ripple, ripple.schema, ripple.delta, ripple.wire\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)
