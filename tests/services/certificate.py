"""A key and a certificate that it has signed itself, for brokers and others on this machine."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def certified(folder: Path) -> tuple[Path, Path]:
    """Return a private key and its certificate for 127.0.0.1, as PEM."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    made_by = ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt"]
    of_whom = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    named = ["ec_paramgen_curve:prime256v1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made_by, *named, *of_whom], check=True, capture_output=True)
    return key, certificate
