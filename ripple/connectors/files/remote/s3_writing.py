"""Objects of S3 that are written: at once, under a condition, or in parts that appear together."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ripple.connectors.files.remote.address import check_written
from ripple.connectors.files.remote.attempts import attempted
from ripple.connectors.files.remote.contract import server_of
from ripple.connectors.files.remote.s3 import Bucket, bucket_and_key
from ripple.connectors.target import WHOLE
from ripple.core.errors import InputAwayError, InputError, OutputAwayError, OutputError
from ripple.storage.store.errors import StoreRefusedError
from ripple.storage.store.s3_errors import TROUBLE, is_absent, is_forbidden, is_taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.world.errors import StoreError

# S3 takes 10,000 parts, of at least 5 MiB: 1,000 of each length.
PART_BYTES = 16 << 20
_PARTS_OF_A_LENGTH = 1_000
_PUT_BY = "ripple-put"
_FIRST = "part-000000000001.parquet"  # of each folder of a durable run


def bucket_of(path: str) -> Bucket:
    """Return the store of an address. Raises OutputError."""
    check_written(path)
    store = server_of(path)
    assert isinstance(store, Bucket)
    return store


def put(path: str, data: memoryview, *, replaces: str | None, writer: str) -> str | None:
    """Store an object if there is none, or the one with the ETag ``replaces``; return its ETag.

    None where another writer came first. A put with a lost answer is known by the name of its
    writer, and a digest, in the object's metadata. Raises OutputError and OutputAwayError.
    """
    store, (bucket, key) = bucket_of(path), bucket_and_key(path)
    put_by = f"{writer} {hashlib.blake2b(data, digest_size=16).hexdigest()}"
    condition = {"IfNoneMatch": "*"} if replaces is None else {"IfMatch": f'"{replaces}"'}
    about = {**_encryption(store), "Metadata": {_PUT_BY: put_by}}

    def once() -> str | None:
        try:
            reply = store.client.put_object(
                Bucket=bucket, Key=key, Body=bytes(data), **condition, **about
            )
            return str(reply["ETag"]).strip('"')
        except TROUBLE as error:
            told = store.told(error, "put", bucket, key)
            has_lost = is_taken(error) or is_absent(error)
            if not has_lost and told.done is False:
                raise _output_error(told) from error
            found = _stored(store, bucket, key)
            if found is not None and found.get("Metadata", {}).get(_PUT_BY) == put_by:
                return str(found["ETag"]).strip('"')
            if has_lost:
                return None
            raise _output_error(told) from error

    return attempted(once)


class ObjectTarget:
    """An object that appears whole at the commit, in the place of an older one; see Target.

    Parts are uploaded as they fill; parts of a killed process are invisible, and stay until the
    bucket's rule for incomplete uploads removes them.

    Invariant: ``_parts`` are the stored parts of ``_upload``, ``_held`` all bytes after them.
    """

    promise = WHOLE

    def __init__(self, path: str) -> None:
        """Begin. Raises OutputError and OutputAwayError, also for a folder."""
        self.name = path
        self._store = bucket_of(path)
        self._bucket, self._key = bucket_and_key(path)
        if self._key.endswith("/"):
            raise OutputError(
                f"cannot write {path}: it is a folder, and a one-shot run writes one object: name "
                f"it, as in {path}out.parquet"
            )
        self._held = bytearray()
        self._upload: dict[str, str] = {}
        self._parts: list[dict[str, Any]] = []
        self._check_free()

    def write(self, data: bytes | memoryview) -> int:
        """Hold the bytes, and upload full parts."""
        self._held += data
        while len(self._held) >= (length := self._part_bytes):
            self._put_part(bytes(memoryview(self._held)[:length]))
            del self._held[:length]
        return memoryview(data).nbytes

    def commit(self) -> None:
        """Let the object appear."""
        at = {"Bucket": self._bucket, "Key": self._key}
        if not self._parts:
            body, about = bytes(self._held), _encryption(self._store)
            self._asked(lambda: self._store.client.put_object(**at, Body=body, **about))
            return
        if self._held:
            self._put_part(bytes(self._held))
        self._asked(self._complete)
        self._upload = {}

    def close(self) -> None:
        """Give up uncommitted bytes."""
        upload, self._upload = self._upload, {}
        self._held.clear()
        if upload:
            with suppress(*TROUBLE):
                self._store.client.abort_multipart_upload(**upload)

    @property
    def _part_bytes(self) -> int:
        return PART_BYTES * (1 + len(self._parts) // _PARTS_OF_A_LENGTH)

    def _check_free(self) -> None:
        """Raise OutputError where a durable run has its folder, and within that folder."""
        names = self._key.split("/")
        above = ["/".join(names[:count]) for count in range(1, len(names))]
        for begin in (f"{self._key}/part-", *(f"{folder}/{_FIRST}" for folder in above)):
            try:
                found = self._store.client.list_objects_v2(
                    Bucket=self._bucket, Prefix=begin, MaxKeys=1
                )
            except TROUBLE as error:
                if is_forbidden(error):
                    return  # it may still be written
                told = self._store.told(error, "list", self._bucket, self._key)
                raise _output_error(told) from error
            if found.get("Contents"):
                folder = begin.rpartition("/")[0]
                raise OutputError(
                    f"cannot write {self.name}: a durable run writes its files into "
                    f"s3://{self._bucket}/{folder}; name another object"
                )

    def _put_part(self, data: bytes) -> None:
        client = self._store.client
        if not self._upload:
            at = {"Bucket": self._bucket, "Key": self._key}
            about = _encryption(self._store)
            begun = self._asked(lambda: client.create_multipart_upload(**at, **about))
            self._upload = {**at, "UploadId": begun["UploadId"]}
        upload, number = self._upload, len(self._parts) + 1
        reply = self._asked(lambda: client.upload_part(**upload, PartNumber=number, Body=data))
        # A part's checksum has to be repeated in the completing request.
        sums = {name: reply[name] for name in reply if name.startswith("Checksum")}
        sums.pop("ChecksumType", None)
        self._parts.append({"PartNumber": number, "ETag": reply["ETag"], **sums})

    def _complete(self) -> None:
        """Complete the upload; one that is gone was completed by an answer that was lost."""
        try:
            self._store.client.complete_multipart_upload(
                **self._upload, MultipartUpload={"Parts": self._parts}
            )
        except TROUBLE as error:
            if not is_absent(error):
                raise
            sums = b"".join(bytes.fromhex(one["ETag"].strip('"')) for one in self._parts)
            expected = f"{hashlib.md5(sums, usedforsecurity=False).hexdigest()}-{len(self._parts)}"
            found = _stored(self._store, self._bucket, self._key)
            if found is None or found["ETag"].strip('"') != expected:
                raise

    def _asked(self, request: Callable[[], Any]) -> Any:
        """Return the answer to a request that may be repeated."""

        def once() -> Any:
            try:
                return request()
            except TROUBLE as error:
                told = self._store.told(error, "put", self._bucket, self._key)
                raise _output_error(told) from error

        return attempted(once)


def _stored(store: Bucket, bucket: str, key: str) -> dict[str, Any] | None:
    """Return the metadata of an object, None without it. Raises OutputAwayError, OutputError."""
    try:
        found: dict[str, Any] = store.client.head_object(Bucket=bucket, Key=key)
    except TROUBLE as error:
        if is_absent(error):
            return None
        raise _output_error(store.told(error, "get", bucket, key)) from error
    return found


def _encryption(store: Bucket) -> dict[str, str]:
    known = {
        "ServerSideEncryption": store.settings.encryption,
        "SSEKMSKeyId": store.settings.kms_key,
    }
    return {name: value for name, value in known.items() if value}


def _output_error(told: StoreError) -> OutputError:
    return (OutputError if isinstance(told, StoreRefusedError) else OutputAwayError)(str(told))


def as_output(error: InputError) -> OutputError:
    """Return an error of reading an output back as one of the output."""
    kind = OutputAwayError if isinstance(error, InputAwayError) else OutputError
    return kind(str(error))
