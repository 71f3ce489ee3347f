"""Settings of an S3-compatible store, except credentials.

Credentials come from the usual AWS chain alone: its variables, its files, the role of the machine
or the pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

from ripple.core.setting import Alias, SettingsError, made, setting, settings_of
from ripple.core.settings import Arguments, in_force

ADDRESSING = ("auto", "path", "virtual")
ENCRYPTIONS = ("AES256", "aws:kms", "aws:kms:dsse", "aws:fsx")


def _setting(name: str, help_text: str, default: str = "") -> Any:
    name = f"s3_{name}"
    return setting(help_text, default=default, name=name, places=(Alias(f"cluster.{name}"),))


@dataclass(frozen=True, slots=True)
class S3Settings:
    """The settings of an S3-compatible store."""

    endpoint: str = _setting(
        "endpoint", "http(s)://HOST[:PORT] of a store that speaks S3; none: Amazon's"
    )
    region: str = _setting("region", "the bucket's region; none: that of the AWS chain")
    encryption: str = _setting(
        "encryption",
        "how the store encrypts what it keeps: AES256, aws:kms, aws:kms:dsse; none: as it says",
    )
    kms_key: str = _setting("kms_key", "the key, where s3_encryption is aws:kms")
    addressing: str = _setting(
        "addressing",
        "where a bucket's name stands: in the path, in the host (virtual), or auto: in the path "
        "where an endpoint is given",
        "auto",
    )

    def __post_init__(self) -> None:
        """Raise SettingsError for an invalid combination."""
        parts = urlsplit(self.endpoint)
        if "@" in parts.netloc:  # not shown: it may hold a password
            raise SettingsError("s3_endpoint holds a user: credentials come from the AWS chain")
        if self.endpoint and (parts.scheme not in ("http", "https") or not parts.netloc):
            raise SettingsError(f"s3_endpoint is {self.endpoint!r}, not http(s)://HOST[:PORT]")
        if self.addressing not in ADDRESSING:
            raise SettingsError(
                f"s3_addressing is {self.addressing!r}, none of {', '.join(ADDRESSING)}"
            )
        if self.encryption and self.encryption not in ENCRYPTIONS:
            raise SettingsError(
                f"s3_encryption is {self.encryption!r}, none of {', '.join(ENCRYPTIONS)}"
            )
        if self.kms_key and not self.encryption.startswith("aws:kms"):
            raise SettingsError("s3_kms_key is given, but s3_encryption is not aws:kms")

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the variables ``RIPPLE_S3_...``. Raises SettingsError."""
        given = Arguments({})
        return made(cls, in_force(settings_of(cls), given, environment, {}, section="s3"))


def split_url(url: str) -> tuple[str, str]:
    """Return the bucket and the prefix of ``s3://bucket/prefix``. Raises SettingsError."""
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    prefix = prefix.strip("/")
    if "@" in url[3:].lstrip("/").partition("/")[0]:  # not shown: it may hold a secret
        raise SettingsError(
            "the store s3://...@... holds a user: give s3://BUCKET/PREFIX, and "
            "credentials by the AWS chain, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if not url.startswith("s3://") or not bucket or "//" in prefix:
        raise SettingsError(f"{url!r} is not s3://bucket or s3://bucket/prefix")
    return bucket, prefix


def is_s3(place: str) -> bool:
    """Return whether a URI is in S3 and not a folder.

    The scheme decides, in upper or lower case and also with too few slashes: ``split_url`` reports
    those, where a folder of that name would be made silently.
    """
    return place[:3].lower() == "s3:"
