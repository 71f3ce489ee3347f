"""Objects in buckets of S3, or of a store that speaks it."""

from __future__ import annotations

import os
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ripple.connectors.files.remote.address import checked
from ripple.connectors.files.remote.attempts import CONNECT_S, READ_S, attempted
from ripple.connectors.files.version import FileGoneError, Version
from ripple.core.errors import InputAwayError, InputError
from ripple.core.extras import needed
from ripple.storage.store.errors import StoreRefusedError
from ripple.storage.store.s3_errors import TROUBLE, is_absent, store_error
from ripple.storage.store.s3_settings import S3Settings
from ripple.world.errors import UnreadableError

with needed("s3", "a file in S3"):
    from botocore.config import Config
    from botocore.session import get_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.world.errors import StoreError

_CONNECTIONS_MAX = 10
_BEHIND_THE_END = 416


class Bucket:
    """The objects of all buckets that the AWS chain gives access to; see FileServer.

    Address and region come from ``RIPPLE_S3_ENDPOINT`` and ``RIPPLE_S3_REGION``, as of checkpoints.
    """

    def __init__(self) -> None:
        self.settings = S3Settings.of_environment(os.environ)
        self._opening = Lock()

    def version(self, path: str) -> Version:
        """Return the present version of a file; see FileServer."""
        bucket, key = bucket_and_key(path)
        return attempted(lambda: self._version(bucket, key))

    def find(self, path: str) -> Version | None:
        """Return the present version of an object, None without it."""
        bucket, key = bucket_and_key(path)
        return attempted(lambda: self._find(bucket, key))

    def read(self, path: str, start: int, length: int) -> tuple[bytes, Version]:
        """Return bytes of an object; see FileServer."""
        bucket, key = bucket_and_key(path)
        return attempted(lambda: self._read(bucket, key, start, length))

    def listed(self, bucket: str, prefix: str) -> Iterator[tuple[str, Version]]:
        """Yield the objects with a prefix, in the order of the store."""
        after: dict[str, str] = {}
        while True:
            page = attempted(partial(self._page, bucket, prefix, after))
            for one in page.get("Contents", ()):
                yield one["Key"], Version(int(one["Size"]), one["ETag"].strip('"'))
            if not page.get("IsTruncated"):
                return
            after = {"ContinuationToken": page["NextContinuationToken"]}

    def _version(self, bucket: str, key: str) -> Version:
        found = self._find(bucket, key)
        if found is None:
            raise FileGoneError(f"cannot read s3://{bucket}/{key}: there is no such object")
        return found

    def _find(self, bucket: str, key: str) -> Version | None:
        try:
            found = self.client.head_object(Bucket=bucket, Key=key)
        except TROUBLE as error:
            if is_absent(error):
                return None
            raise self._error(error, "get", bucket, key) from error
        return _version(found, int(found["ContentLength"]))

    def _read(self, bucket: str, key: str, start: int, length: int) -> tuple[bytes, Version]:
        try:
            reply = self.client.get_object(
                Bucket=bucket, Key=key, Range=f"bytes={start}-{start + length - 1}"
            )
            with reply["Body"] as body:
                data: bytes = body.read()
        except TROUBLE as error:
            if is_absent(error):
                raise InputError(f"s3://{bucket}/{key} was removed while it was read") from error
            if _status(error) == _BEHIND_THE_END:
                return b"", self._version(bucket, key)
            raise self._error(error, "get", bucket, key) from error
        size = int(reply["ContentRange"].rpartition("/")[2])
        return data, _version(reply, size)

    def _page(self, bucket: str, prefix: str, after: dict[str, str]) -> dict[str, Any]:
        try:
            page: dict[str, Any] = self.client.list_objects_v2(
                Bucket=bucket, Prefix=prefix, **after
            )
        except TROUBLE as error:
            raise self._error(error, "list", bucket, prefix) from error
        return page

    def told(self, error: Exception, operation: str, bucket: str, key: str) -> StoreError:
        """Return an error of the client as one of a store."""
        address = f" at {self.settings.endpoint}" if self.settings.endpoint else ""
        return store_error(error, operation, bucket, key, address)

    def _error(self, error: Exception, operation: str, bucket: str, key: str) -> InputError:
        told = self.told(error, operation, bucket, key)
        is_refused = isinstance(told, StoreRefusedError | UnreadableError)
        return InputError(str(told)) if is_refused else InputAwayError(str(told))

    @property
    def client(self) -> Any:
        """The client of all requests, opened once."""
        with self._opening:
            return self._client

    @cached_property
    def _client(self) -> Any:
        settings = self.settings
        style = settings.addressing
        if style == "auto" and settings.endpoint:
            style = "path"
        config = Config(
            retries={"total_max_attempts": 1},  # they are ours
            s3={"addressing_style": style},
            max_pool_connections=_CONNECTIONS_MAX,
            connect_timeout=CONNECT_S,
            read_timeout=READ_S,
            response_checksum_validation="when_required",
        )
        return get_session().create_client(
            "s3",
            region_name=settings.region or None,
            endpoint_url=settings.endpoint or None,
            config=config,
        )


def bucket_and_key(path: str) -> tuple[str, str]:
    """Return the bucket and the key; raises InputError."""
    checked(path)
    return urlsplit(path).netloc, path.partition("://")[2].partition("/")[2]


def _version(reply: dict[str, Any], size_bytes: int) -> Version:
    return Version(size_bytes, reply["ETag"].strip('"'))


def _status(error: Exception) -> int:
    response = getattr(error, "response", {})
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
