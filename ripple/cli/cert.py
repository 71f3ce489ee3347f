"""Create a CA and certificates, for a development cluster; needs openssl."""

from __future__ import annotations

import ipaddress
import os
import re
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.cli.lib.path_options import a_place
from ripple.core.errors import InputError, OutputError

if TYPE_CHECKING:
    import argparse

EXAMPLES = (
    "ripple cert --dir certificates --name worker-1 --host worker-1.example",
    "ripple cert --dir certificates --name ann --client",
)

NAMES = ("coordinator", "worker", "gateway")
HOSTS = ("localhost", "127.0.0.1", "::1")
AUTHORITY = "ca"
AUTHORITY_DAYS = 3650
DAYS = 397  # the longest that clients accept
HOST_CHARACTERS_MAX = 253
_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NAME = re.compile(rf"(?=.{{1,63}}\Z){_HOST.pattern}")  # the longest common name


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--dir", type=a_place, required=True, metavar="DIR", help="target folder")
    parser.add_argument(
        "--name",
        action="append",
        metavar="NAME",
        help="subject of a certificate, issued by the folder's CA or a new one; may be repeated; "
        f"default: {', '.join(NAMES)}, by a new CA",
    )
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="HOST",
        help="a host name or address of its machine, *.NAME for a wildcard; may be repeated; "
        "localhost is included",
    )
    parser.add_argument(
        "--client",
        action="store_true",
        help="issue client certificates, which no server can use",
    )
    parser.add_argument(
        "--days",
        type=int,
        default=DAYS,
        metavar="N",
        help=f"validity (default and maximum: {DAYS}); files may be replaced while processes run",
    )


def run(options: argparse.Namespace) -> int:
    """Create the certificates; return the exit code."""
    folder: str = options.dir
    names: list[str] = options.name or list(NAMES)
    _check_all(options, names)
    has_authority = os.path.exists(_path(folder, AUTHORITY, "crt"))
    if has_authority and not options.name:
        raise OutputError(
            f"{_path(folder, AUTHORITY, 'crt')} exists, and a new CA would invalidate the "
            "certificates that it issued: issue more with --name, or choose another "
            "folder"
        )
    for name in names if has_authority else (AUTHORITY, *names):
        for ending in ("crt", "key"):
            if os.path.lexists(_path(folder, name, ending)):
                raise OutputError(f"{_path(folder, name, ending)} exists: move it away")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if not has_authority:
        _make_authority(folder)
    for name in names:
        try:
            hosts = [name] if options.client else [name, *HOSTS, *options.host]
            _make(folder, name, hosts, "clientAuth" if options.client else _BOTH, options.days)
        except BaseException:
            for ending in ("key", "crt"):  # incomplete, and in the way of the next try
                _drop(folder, name, ending)
            raise
    made = ", ".join(f"{name}.crt" for name in names)
    print(f"{folder}: {made}, each with its .key, issued by {AUTHORITY}.crt")
    print("for development only: the CA's private key is in the same folder")
    return 0


def _check_all(options: argparse.Namespace, names: list[str]) -> None:
    """Check the arguments. Raises InputError."""
    for name in names:
        _check(name, _NAME)
    for host in options.host:
        _check_host(host)
    if options.client and (options.host or not options.name):
        raise InputError("--client needs --name, and no --host")
    if not 1 <= options.days <= DAYS:
        raise InputError(f"--days is {options.days}, not from 1 to {DAYS}")
    if AUTHORITY in names:
        raise InputError(f"{AUTHORITY} is the CA's own name: choose another one")


def _make_authority(folder: str) -> None:
    _openssl(
        [
            *("req", "-x509", *_NEW_KEY, "-keyout", _path(folder, AUTHORITY, "key")),
            *("-out", _path(folder, AUTHORITY, "crt"), "-days", str(AUTHORITY_DAYS)),
            *("-subj", "/O=Ripple/CN=Ripple development authority", "-config", "/dev/stdin"),
            *("-extensions", "authority"),
        ],
        _settings("authority", ["basicConstraints=critical,CA:true,pathlen:0", _AUTHORITY_USE]),
    )


def _make(folder: str, name: str, hosts: list[str], uses: str, days: int) -> None:
    subjects = ",".join(dict.fromkeys(map(_subject_of, hosts)))
    request = os.path.join(folder, f".{os.urandom(8).hex()}.csr")
    settings = _settings(
        "member",
        [
            "basicConstraints=critical,CA:false",
            "keyUsage=critical,digitalSignature",
            f"extendedKeyUsage={uses}",
            "authorityKeyIdentifier=keyid",
            f"subjectAltName={subjects}",
        ],
    )
    try:
        _openssl(
            [
                *("req", "-new", *_NEW_KEY, "-keyout", _path(folder, name, "key")),
                *("-out", request, "-subj", f"/O=Ripple/CN={name}", "-config", "/dev/stdin"),
            ],
            settings,
        )
        _openssl(
            [
                *("x509", "-req", "-in", request, "-out", _path(folder, name, "crt")),
                *(
                    "-CA",
                    _path(folder, AUTHORITY, "crt"),
                    "-CAkey",
                    _path(folder, AUTHORITY, "key"),
                ),
                *("-set_serial", f"0x{os.urandom(16).hex()}", "-days", str(days), "-sha256"),
                *("-extfile", "/dev/stdin", "-extensions", "member"),
            ],
            settings,
        )
    finally:
        with suppress(FileNotFoundError):
            os.remove(request)


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-sha256")
_BOTH = "serverAuth,clientAuth"
_AUTHORITY_USE = "keyUsage=critical,keyCertSign,cRLSign"


def _settings(section: str, lines: list[str]) -> str:
    base = ["[req]", "distinguished_name=nobody", "prompt=no", "[nobody]", "CN=-"]
    return "\n".join([*base, f"[{section}]", "subjectKeyIdentifier=hash", *lines, ""])


def _openssl(arguments: list[str], settings: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - of checked names
            ["openssl", *arguments],  # noqa: S607 - the user's own
            input=settings,
            capture_output=True,
            text=True,
            check=False,
            umask=0o077,  # a key is never readable by others, not even for a moment
        )
    except FileNotFoundError:
        raise InputError("openssl is not installed: install it, or bring your own files") from None
    if done.returncode != 0:
        said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise OutputError(f"openssl {arguments[0]} failed: {said}")


def _subject_of(host: str) -> str:
    try:
        return f"IP:{ipaddress.ip_address(host)}"
    except ValueError:
        return f"DNS:{host}"


def _check(name: str, form: re.Pattern[str]) -> None:
    if not (form.fullmatch(name) or _subject_of(name).startswith("IP:")):
        raise InputError(
            f"invalid host name {name!r}: letters, digits and hyphens, between single dots"
        )


def _check_host(host: str) -> None:
    below = host.removeprefix("*.")
    if len(below) > HOST_CHARACTERS_MAX:
        raise InputError(f"{host!r:.80} has more than {HOST_CHARACTERS_MAX} characters")
    _check(below, _HOST)
    if below != host and _subject_of(below).startswith("IP:"):
        raise InputError(f"{host!r}: an IP address has no wildcard: name each address")


def _drop(folder: str, name: str, ending: str) -> None:
    if os.path.exists(_path(folder, name, ending)):
        os.remove(_path(folder, name, ending))


def _path(folder: str, name: str, ending: str) -> str:
    return os.path.join(folder, f"{name}.{ending}")
