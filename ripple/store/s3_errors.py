"""What S3 and the way to it answer instead of doing what they were asked, as errors of a store.

A message names the operation, the bucket, the key and S3's code, and never what a server has said
in its own words: a clone might repeat what it was sent.
"""

from __future__ import annotations

from typing import Any

from ripple.extras import needed
from ripple.store.errors import StoreRefusedError
from ripple.world.errors import StoreError

with needed("s3", "a store in S3"):
    from aiohttp import ClientError as AiohttpError
    from botocore import exceptions as boto

TROUBLE = (boto.BotoCoreError, boto.ClientError, AiohttpError, OSError)

_TAKEN = 412
_TOO_MANY = 429
_FAILED = 500
# Of requests that are refused for now: repeated, they may be done.
_FOR_NOW = {
    *("ConditionalRequestConflict", "OperationAborted", "RequestTimeout", "SlowDown"),
    "NoSuchUpload",  # somebody has tidied up: begun again, it is there
    *("Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests"),
}
_WHO = {
    *("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"),
    *("TokenRefreshRequired", "AuthorizationHeaderMalformed"),
}
_NOT_SENT = (boto.EndpointConnectionError, boto.ConnectTimeoutError)
_NOBODY = (
    *(boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError),
    *(boto.TokenRetrievalError, boto.ProfileNotFound, boto.NoAuthTokenError),
)
# What an operation needs to be allowed.
_ALLOWED = {
    "put": "s3:PutObject",
    "get": "s3:GetObject",
    "list": "s3:ListBucket",
    "delete": "s3:DeleteObject",
}


def is_taken(error: Exception) -> bool:
    """Return whether S3 says that there is an object of that name."""
    return _status(error) == _TAKEN


def is_absent(error: Exception) -> bool:
    """Return whether S3 says that there is no object of that name."""
    return _status(error) == 404 and _code(error) != "NoSuchBucket"


def store_error(
    error: Exception, operation: str, bucket: str, key: str, at: str = ""
) -> StoreError:
    """Return what went wrong: a StoreRefusedError where asking again would not help.

    at: the store's address, where it is not Amazon's.
    """
    where = f"{operation} s3://{bucket}/{key}{at}"
    code = _code(error)
    if isinstance(error, _NOBODY):
        return StoreRefusedError(
            f"{where}: there are no credentials ({type(error).__name__}): set AWS_ACCESS_KEY_ID "
            "and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role"
        )
    if not isinstance(error, boto.ClientError):
        done = False if isinstance(error, _NOT_SENT) or operation != "put" else None
        return StoreError(f"{where}: no answer ({type(error).__name__})", done=done)
    status = _status(error)
    if code in _FOR_NOW or status == _TOO_MANY or status >= _FAILED:
        return StoreError(f"{where}: {status} {code}", done=None if status >= _FAILED else False)
    said = f"{where}: refused, {status} {code}"
    if code == "NoSuchBucket":
        return StoreRefusedError(f"{said}: make the bucket {bucket}, or name another")
    if code in _WHO or status == 401:
        return StoreRefusedError(f"{said}: check the credentials and the region (s3_region)")
    if status == 403:
        return StoreRefusedError(
            f"{said}: allow {_ALLOWED[operation]} on {bucket}, or check the credentials"
        )
    if status in (301, 307, 400):
        return StoreRefusedError(
            f"{said}: check s3_region and s3_endpoint, and what the bucket asks for"
        )
    return StoreRefusedError(said)


def _code(error: Exception) -> str:
    return str(_response(error).get("Error", {}).get("Code", ""))[:100]


def _status(error: Exception) -> int:
    return int(_response(error).get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _response(error: Exception) -> dict[str, Any]:
    return dict(error.response) if isinstance(error, boto.ClientError) else {}
