"""Error mapping: errors of S3 and of the network as errors of a store.

A message names the operation, the bucket, the key and S3's code, and never quotes a server's own
text: an S3 clone might echo secrets.
"""

from __future__ import annotations

import ssl
from typing import Any

from ripple.core.extras import needed
from ripple.storage.store.errors import StoreRefusedError
from ripple.world.errors import StoreError, UnreadableError

with needed("s3", "a store in S3"):
    from aiohttp import ClientError as AiohttpError
    from botocore import exceptions as boto

# ValueError: an address, a region or a key that no request can have.
TROUBLE = (
    *(boto.BotoCoreError, boto.ClientError, AiohttpError),
    *(OSError, ValueError, RecursionError),
)

_TAKEN = 412
_UNKNOWN_THERE = 501
_CAUSES_MAX = 10
_SAID_CHARACTERS_MAX = 300
_TOO_MANY = 429
_FAILED = 500
# Transient rejections: a retry may succeed.
_FOR_NOW = {
    *("ConditionalRequestConflict", "OperationAborted", "RequestTimeout", "SlowDown"),
    "NoSuchUpload",  # the upload was cleaned up; a new one succeeds
    *("Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests"),
}
_WHO = {
    *("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"),
    *("TokenRefreshRequired", "AuthorizationHeaderMalformed"),
}
_SKEWED = {"RequestTimeTooSkewed", "RequestExpired"}
_NOT_SENT = (boto.EndpointConnectionError, boto.ConnectTimeoutError)
# The network: botocore's other errors are local faults, which a retry does not cure.
_WAY = (
    *(boto.ConnectionError, boto.HTTPClientError),
    *(boto.ResponseStreamingError, boto.IncompleteReadError),
)
_NOBODY = (
    *(boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError),
    *(boto.TokenRetrievalError, boto.ProfileNotFound, boto.NoAuthTokenError),
)
# The permission that an operation needs.
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


def is_forbidden(error: BaseException | None) -> bool:
    """Return whether S3 denies access to known credentials."""
    return (
        isinstance(error, boto.ClientError)
        and _status(error) == 403
        and _code(error) == "AccessDenied"
    )


def store_error(
    error: Exception, operation: str, bucket: str, key: str, at: str = ""
) -> StoreError:
    """Return the error to raise: a StoreRefusedError where a retry would not help.

    at: the store's address, where it is not Amazon's.
    """
    where = f"{operation} s3://{bucket}/{key}{at}"
    code = _code(error)
    if not isinstance(error, boto.ClientError):
        return _unanswered(error, operation, where)
    status = _status(error)
    answer = f"{status} {code}" if code != str(status) else code
    if status == _UNKNOWN_THERE:
        return StoreRefusedError(
            f"{where}: refused, {answer}: the store does not do what is asked of it; it must know "
            "If-None-Match: * on puts, and s3_encryption if that is given"
        )
    if code in _FOR_NOW or status == _TOO_MANY or status >= _FAILED:
        return StoreError(f"{where}: {answer}", done=None if status >= _FAILED else False)
    said = f"{where}: refused, {answer}"
    if operation == "get" and (code == "InvalidObjectState" or code.startswith("KMS.")):
        return UnreadableError(f"{said}: restore the object, or its key")
    if code in _SKEWED:
        return StoreRefusedError(f"{said}: check this machine's clock, the store's is another")
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


def _unanswered(error: Exception, operation: str, where: str) -> StoreError:
    """Return the error for a request without an answer: a network error, or a local fault.

    botocore's texts about local faults name settings, files and arguments, and are passed on.
    """
    kind = type(error).__name__
    if isinstance(error, boto.ProfileNotFound):
        profile = error.kwargs.get("profile")
        return StoreRefusedError(
            f"{where}: there is no profile {profile!r}: check AWS_PROFILE and AWS_CONFIG_FILE"
        )
    if isinstance(error, _NOBODY):
        return StoreRefusedError(
            f"{where}: there are no credentials ({kind}): set AWS_ACCESS_KEY_ID "
            "and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role"
        )
    if isinstance(error, boto.NoRegionError):
        return StoreRefusedError(f"{where}: there is no region: set s3_region, or AWS_REGION")
    if isinstance(error, boto.SSLError) and _is_of(error, ssl.SSLCertVerificationError):
        return StoreRefusedError(
            f"{where}: the certificate of the store is not believed: check s3_endpoint, and name "
            "its authority in AWS_CA_BUNDLE"
        )
    if isinstance(error, RecursionError):
        return StoreRefusedError(
            f"{where}: redirected without end: check s3_region and s3_endpoint"
        )
    is_ours = isinstance(error, boto.BotoCoreError | ValueError) and not isinstance(error, _WAY)
    if is_ours or (type(error) is boto.HTTPClientError and _is_of(error, ValueError)):
        text = " ".join(str(error).split())[:_SAID_CHARACTERS_MAX]
        return StoreRefusedError(f"{where}: it cannot be asked: {text or kind}")
    done = False if isinstance(error, _NOT_SENT) or operation != "put" else None
    hint = ": does the store speak TLS? Check s3_endpoint" * isinstance(error, boto.SSLError)
    return StoreError(f"{where}: no answer ({kind}){hint}", done=done)


def _is_of(error: BaseException, kind: type[Exception]) -> bool:
    """Return whether an error, or its cause, is of a kind."""
    seen: list[BaseException] = []
    left: list[object] = [error]
    while left:
        one = left.pop()
        if isinstance(one, kind):
            return True
        if isinstance(one, BaseException) and one not in seen and len(seen) < _CAUSES_MAX:
            seen.append(one)
            left += [one.__cause__, one.__context__, getattr(one, "kwargs", {}).get("error")]
            left.append(getattr(one, "os_error", None))
    return False


def _code(error: Exception) -> str:
    return str(_response(error).get("Error", {}).get("Code", ""))[:100]


def _status(error: Exception) -> int:
    return int(_response(error).get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _response(error: Exception) -> dict[str, Any]:
    return dict(error.response) if isinstance(error, boto.ClientError) else {}
