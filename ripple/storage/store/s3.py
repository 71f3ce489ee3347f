"""Objects in a bucket of S3, or of an S3-compatible store.

The first put of a name wins by ``If-None-Match: *``. A reply may be lost, and the HTTP client below
may repeat a put by itself, so that a put that won is answered as one that lost. So every put has a
nonce in the object's metadata; when a put seems to have lost, its nonce is compared with the stored
one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from ripple.core.errors import LimitError
from ripple.core.extras import needed
from ripple.storage.store.errors import StoreRefusedError
from ripple.storage.store.s3_errors import TROUBLE, is_absent, is_forbidden, is_taken, store_error
from ripple.storage.store.s3_settings import S3Settings
from ripple.world.errors import StoreError, UnreadableError

with needed("s3", "a store in S3"):
    from aiobotocore.config import AioConfig
    from aiobotocore.session import get_session
    from botocore.exceptions import ClientError, FlexibleChecksumError

if TYPE_CHECKING:
    from ripple.world.ports import Random

T = TypeVar("T")

CONNECT_S = 5
READ_S = 20
# Of a get, until its length is known; the time for its bytes is added.
ANSWER_S = 25.0
BYTES_PER_S_MIN = 1 << 20
CONNECTIONS_MAX = 50
PART_BYTES = 16 << 20
PARTS_AT_ONCE = 4
PART_ATTEMPTS = 3
NONCE = "ripple-put"
NONCE_BYTES = 16
ABSENT = "absent"  # a name that no object has


class S3Store:
    """The objects below a prefix of a bucket, for one event loop.

    The client is opened by the first call; ``close`` it in the same loop. Each call is tried once:
    see RetryingStore. Objects longer than ``part_bytes``, at least 5 MiB, are put in parts. A get
    has ``answer_s``, and the time for its bytes at 1 MiB a second.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str,
        random: Random,
        settings: S3Settings | None = None,
        *,
        part_bytes: int = PART_BYTES,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._random = random
        self._settings = settings or S3Settings()
        self._address = f" at {self._settings.endpoint}" if self._settings.endpoint else ""
        self._part_bytes = part_bytes
        self._answer_s = answer_s
        self._opened = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._client: Any = None

    def __str__(self) -> str:
        """Return the store's URL and address, for messages."""
        return f"s3://{self._bucket}/{self._prefix}{self._address}"

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        """Store an object unless the name is taken; return whether this call stored it."""
        key, nonce = self._prefix + name, self._random.bytes(NONCE_BYTES).hex()
        try:
            client = await self._ready()
            if len(data) > self._part_bytes:
                await self._put_in_parts(client, key, data, nonce)
            else:
                await client.put_object(
                    **self._at(key), Body=bytes(data), IfNoneMatch="*", **self._about(nonce)
                )
            return True
        except TROUBLE as error:
            trouble = self._error(error, "put", key)
            if not (is_taken(error) or trouble.done is None):
                raise trouble from error
            owner = await self._owner(key)
            if owner is None:
                # Rejected for an object that has gone, or is still under way: unknown.
                raise StoreError(str(trouble), done=None) from error
            return owner == nonce

    async def get(self, name: str, *, length_max: int) -> bytes | None:
        """Return an object, None if there is none.

        Bytes that do not match S3's checksum are got once more, for the network may have changed
        them, and then returned as they are: the caller verifies them.
        """
        key = self._prefix + name
        try:
            return await self._got(key, length_max)
        except StoreRefusedError as error:
            if not (is_forbidden(error.__cause__) and await self._may_read_beside(key)):
                raise
        try:
            return await self._got(key, length_max)  # access may have been restored meanwhile
        except StoreRefusedError as error:
            if not is_forbidden(error.__cause__):
                raise
            raise UnreadableError(f"{error}; other objects can be read") from error

    async def _got(self, key: str, length_max: int) -> bytes | None:
        try:
            try:
                return await self._read(key, length_max, ChecksumMode="ENABLED")
            except FlexibleChecksumError:
                return await self._read(key, length_max)
        except TROUBLE as error:
            if is_absent(error):
                return None
            raise self._error(error, "get", key) from error

    async def _may_read_beside(self, key: str) -> bool:
        """Return whether S3 answers "absent" for a name that was never put.

        Without any right to read, S3 rejects that request as well.
        """
        try:
            await self._read(f"{key.rpartition('/')[0]}/{ABSENT}", 0)
        except TROUBLE as error:
            return is_absent(error)
        return False

    async def _read(self, key: str, length_max: int, **how: str) -> bytes:
        """Return an object. Raises the client's errors, LimitError and StoreError."""
        async with asyncio.timeout(self._answer_s) as limit:
            client = await self._ready()
            reply = await client.get_object(**self._at(key), **how)
            length = int(reply["ContentLength"])
            async with reply["Body"] as body:
                if length > length_max:
                    raise LimitError(f"{self._url(key)} has {length} bytes, above {length_max}")
                allowed_s = self._answer_s + length / BYTES_PER_S_MIN
                limit.reschedule(asyncio.get_running_loop().time() + allowed_s)
                data: bytes = await body.read()
        if len(data) != length:
            raise StoreError(
                f"{self._url(key)} was truncated: {len(data)} of {length} bytes arrived", done=False
            )
        return data

    async def list(self, prefix: str) -> list[str]:
        """Return the names that start with ``prefix``, sorted."""
        key = self._prefix + prefix
        names: list[str] = []
        after: dict[str, str] = {}
        try:
            client = await self._ready()
            while True:
                page = await client.list_objects_v2(Bucket=self._bucket, Prefix=key, **after)
                names += [one["Key"].removeprefix(self._prefix) for one in page.get("Contents", ())]
                if not page.get("IsTruncated"):
                    return sorted(names)
                after = {"ContinuationToken": page["NextContinuationToken"]}
        except TROUBLE as error:
            raise self._error(error, "list", key) from error

    async def delete(self, name: str) -> None:
        """Delete an object."""
        key = self._prefix + name
        try:
            await (await self._ready()).delete_object(**self._at(key))
        except TROUBLE as error:
            if not is_absent(error):
                raise self._error(error, "delete", key) from error

    async def close(self) -> None:
        """Close the connections; closing twice is allowed."""
        self._client = None
        await self._opened.aclose()

    async def _put_in_parts(self, client: Any, key: str, data: bytes, nonce: str) -> None:
        """Upload parts concurrently; the last request makes the object, or is rejected."""
        begun = await client.create_multipart_upload(**self._at(key), **self._about(nonce))
        upload = {**self._at(key), "UploadId": begun["UploadId"]}
        parts = memoryview(data)
        at_once = asyncio.Semaphore(PARTS_AT_ONCE)

        async def put(number: int, start: int) -> dict[str, Any]:
            async with at_once:
                part = bytes(parts[start : start + self._part_bytes])
                reply = await self._again(
                    lambda: client.upload_part(**upload, PartNumber=number, Body=part)
                )
            # A part's checksum has to be repeated in the completing request.
            sums = {name: reply[name] for name in reply if name.startswith("Checksum")}
            sums.pop("ChecksumType", None)
            return {"PartNumber": number, "ETag": reply["ETag"], **sums}

        try:
            starts = enumerate(range(0, len(data), self._part_bytes), 1)
            async with asyncio.TaskGroup() as tasks:
                puts = [tasks.create_task(put(*one)) for one in starts]
            put_all = {"Parts": [one.result() for one in puts]}
            await client.complete_multipart_upload(
                **upload, MultipartUpload=put_all, IfNoneMatch="*"
            )
        except BaseException as error:
            with suppress(*TROUBLE):
                await client.abort_multipart_upload(**upload)
            if isinstance(error, BaseExceptionGroup):
                raise error.exceptions[0] from error
            raise

    async def _owner(self, key: str) -> str | None:
        """Return the nonce of the stored object, "" if it has none, None without an object.

        Raises StoreError: the outcome of the preceding put is unknown.
        """
        try:
            found = await (await self._ready()).head_object(**self._at(key))
        except TROUBLE as error:
            if is_absent(error):
                return None
            trouble = self._error(error, "get", key)
            raise StoreError(f"put, then {trouble}", done=None) from error
        return str(found.get("Metadata", {}).get(NONCE, ""))

    async def _again(self, call: Callable[[], Awaitable[T]]) -> T:
        """Retry an idempotent call a few times."""
        for attempt in range(1, PART_ATTEMPTS):
            with suppress(*TROUBLE):
                return await call()
            await asyncio.sleep(attempt * (1 + self._random.below(1000)) / 1000)
        return await call()

    def _error(self, error: Exception, operation: str, key: str) -> StoreError:
        return store_error(error, operation, self._bucket, key, self._address)

    def _at(self, key: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": key}

    def _about(self, nonce: str) -> dict[str, Any]:
        about: dict[str, Any] = {"Metadata": {NONCE: nonce}}
        if self._settings.encryption:
            about["ServerSideEncryption"] = self._settings.encryption
        if self._settings.kms_key:
            about["SSEKMSKeyId"] = self._settings.kms_key
        return about

    def _url(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}"

    async def _ready(self) -> Any:
        """Return the client, opened once."""
        if self._client is None:
            async with self._opening:
                if self._client is None:
                    client = await self._opened.enter_async_context(self._make_client())
                    client.meta.events.register("before-call.s3.HeadBucket", _know_no_region)
                    self._client = client
        return self._client

    def _make_client(self) -> Any:
        settings = self._settings
        style = settings.addressing
        if style == "auto" and settings.endpoint:
            style = "path"
        config = AioConfig(
            retries={"total_max_attempts": 1},
            s3={"addressing_style": style},
            max_pool_connections=CONNECTIONS_MAX,
            connect_timeout=CONNECT_S,
            read_timeout=READ_S,
            response_checksum_validation="when_required",  # by ChecksumMode: see get
        )
        return get_session().create_client(
            "s3",
            region_name=settings.region or None,
            endpoint_url=settings.endpoint or None,
            config=config,
        )


def _know_no_region(**_: Any) -> None:
    """Return no region to the client, which looks a bucket's region up when it is redirected.

    That request may be redirected as well, without end; the region comes from the settings.
    """
    raise ClientError({"ResponseMetadata": {"HTTPHeaders": {}}}, "HeadBucket")
