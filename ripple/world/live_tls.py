"""TLS 1.3 with certificates on both sides, from files that may be replaced."""

from __future__ import annotations

import os
import ssl
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ripple.world.errors import TlsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ripple.world.tls import Tls

HANDSHAKE_SECONDS_MAX = 10.0
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
State: TypeAlias = "tuple[tuple[int, int, int], ...]"


def context_to_connect(tls: Tls) -> ssl.SSLContext:
    """Return the context of a client. Raises TlsError."""
    return _context(tls, ssl.PROTOCOL_TLS_CLIENT)


def context_to_listen(tls: Tls, warn: Callable[[TlsError], None]) -> ssl.SSLContext:
    """Return the context of a listener, reread for each connection. Raises TlsError.

    While new files do not fit together, those before stay in use, and ``warn`` is called.
    """
    newest = Newest(tls, warn)
    context = _context(tls, ssl.PROTOCOL_TLS_SERVER)
    # Called at the beginning of each handshake, with or without a server name.
    context.sni_callback = newest.choose
    return context


def context_to_show(tls: Tls, warn: Callable[[TlsError], None]) -> ssl.SSLContext:
    """Return the context of a listener for browsers, with or without client certificates.

    As ``context_to_listen`` otherwise; a shown one must be by the authority.
    """
    newest = Newest(tls, warn, ssl.CERT_OPTIONAL)
    context = _context(tls, ssl.PROTOCOL_TLS_SERVER, ssl.CERT_OPTIONAL)
    context.sni_callback = newest.choose
    return context


def names_in(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names in a peer's certificate, as ``getpeercert`` returns it."""
    common = [
        value
        for entry in certificate.get("subject", ())
        for kind, value in entry
        if kind == "commonName"
    ]
    others = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]
    return tuple(dict.fromkeys([*common, *others]))


def refusal(error: OSError) -> str:
    """Return in words why a connection has broken."""
    if isinstance(error, ssl.SSLError) and error.reason is not None:
        reason = error.reason.replace("_", " ").lower()
        return f"the peer refused it: {reason}" if "alert" in reason else reason
    return error.strerror or str(error)


def misfit(error: ssl.SSLError, address: str, name: str, tls: Tls) -> TlsError:
    """Return why a connection failed, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsError(
            address,
            f"its certificate does not fit: {error.verify_message} (it must be for {name!r}, by an "
            f"authority in {tls.authority})",
        )
    return TlsError(address, f"it does not speak TLS 1.3 with us: {refusal(error)}")


def binding_of(connection: ssl.SSLObject | None, *, listens: bool) -> str:
    """Return a digest of the listener's certificate, as either end of a connection knows it."""
    if connection is None:
        return ""
    if not listens:
        return sha256(connection.getpeercert(binary_form=True) or b"").hexdigest()
    shown = connection.context
    assert isinstance(shown, _Context)
    return shown.digest


class _Context(ssl.SSLContext):
    """A context that knows its certificate, which a connection does not show."""

    digest = ""


class Files(NamedTuple):
    """The contents of the files."""

    certificate: bytes
    key: bytes
    authority: bytes


def read(tls: Tls) -> Files:
    """Return the contents of the files, for callers that need no context. Raises TlsError."""
    _context(tls, ssl.PROTOCOL_TLS_SERVER)
    found = []
    for path in (tls.certificate, tls.key, tls.authority):
        with open(path, "rb") as file:
            found.append(file.read())
    return Files(*found)


class Newest:
    """Notices that the files have changed, and that they fit together again."""

    def __init__(
        self,
        tls: Tls,
        warn: Callable[[TlsError], None],
        verify: ssl.VerifyMode = ssl.CERT_REQUIRED,
    ) -> None:
        self._tls = tls
        self._warn = warn
        self._verify = verify
        self._seen = _state(tls)
        self._context: ssl.SSLContext | None = None

    def has_changed(self) -> bool:
        """Return whether they are others than when this was last asked, and fit together."""
        state = _state(self._tls)
        if state == self._seen:
            return False
        self._seen = state
        try:
            self._context = _context(self._tls, ssl.PROTOCOL_TLS_SERVER, self._verify)
        except TlsError as error:
            self._warn(error)
            return False
        return True

    def changed(self) -> Files | None:
        """Return their contents if they have changed, and fit together."""
        return read(self._tls) if self.has_changed() else None

    def choose(
        self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _outer: ssl.SSLContext
    ) -> None:
        """Continue a connection with the files as they are now."""
        self.has_changed()
        if self._context is not None:
            connection.context = self._context


def _state(tls: Tls) -> State:
    found = []
    for path in (tls.certificate, tls.key, tls.authority):
        try:
            status = os.stat(path)
        except OSError:
            found.append((0, 0, 0))
        else:
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)


def _context(tls: Tls, side: int, verify: ssl.VerifyMode = ssl.CERT_REQUIRED) -> ssl.SSLContext:
    context = _Context(side)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = verify
    if side == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0  # a resumed session would not look at certificates again
    for path in (tls.certificate, tls.key, tls.authority):
        try:
            os.stat(path)
        except OSError as error:
            raise TlsError(path, f"cannot be read: {error.strerror}") from None
    _load_pair(context, tls)
    context.digest = _digest(tls.certificate)
    try:
        context.load_verify_locations(tls.authority)
    except ssl.SSLError:
        raise TlsError(tls.authority, "holds no certificate in PEM form") from None
    except OSError as error:
        raise TlsError(tls.authority, f"cannot be read: {error.strerror}") from None
    return context


def ends_s(path: str) -> int:
    """Return the end of a file's certificate's validity, in seconds since 1970.

    Raises OSError, ValueError or IndexError if it is none.
    """
    der = _first(path)
    _, at, _ = _element(der, 0)  # the certificate,
    _, at, _ = _element(der, at)  # its signed part
    kind, _, after = _element(der, at)
    if kind == 0xA0:  # a version
        at = after
    for _ in range(3):  # serial number, algorithm, issuer
        _, _, at = _element(der, at)
    _, at, _ = _element(der, at)  # from when, until when
    _, _, at = _element(der, at)
    kind, begin, end = _element(der, at)
    text = der[begin:end].decode("ascii")
    if kind == 0x17:  # a year of two digits
        text = ("20" if int(text[:2]) < 50 else "19") + text
    return int(datetime.strptime(text, "%Y%m%d%H%M%S%z").timestamp())


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """Return the kind of the element there, its begin and its end."""
    length, begin = der[at + 1], at + 2
    if length & 0x80:
        length, begin = (
            int.from_bytes(der[begin : begin + (length & 0x7F)]),
            begin + (length & 0x7F),
        )
    return der[at], begin, begin + length


def _digest(path: str) -> str:
    """Return a digest of a file's certificate."""
    return sha256(_first(path)).hexdigest()


def _first(path: str) -> bytes:
    """Return the first certificate in a file, which is the one of its owner."""
    with open(path, encoding="latin-1") as file:
        text = file.read()
    begin, end = text.index(_BEGIN), text.index(_END) + len(_END)
    return ssl.PEM_cert_to_DER_cert(text[begin:end])


def _load_pair(context: ssl.SSLContext, tls: Tls) -> None:
    def no_passphrase() -> str:
        raise TlsError(tls.key, "needs a passphrase: give a private key without one")

    try:
        context.load_cert_chain(tls.certificate, tls.key, no_passphrase)
    except TlsError:
        raise
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise TlsError(tls.key, f"is not the private key of {tls.certificate}") from None
        raise TlsError(
            tls.certificate, f"holds no certificate, or {tls.key} no private key, in PEM form"
        ) from None
    except OSError as error:
        raise TlsError(
            tls.certificate, f"cannot be read, or {tls.key} cannot: {error.strerror}"
        ) from None
