"""Section `blobs` of `harvest.toml`: the store of bodies over 64 kB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from streams.config.base import mistake
from streams.config.connections import HTTP, Connection, secret
from streams.config.secret_files import check_ca

MIB = 1 << 20


class Blobs(Connection):
    """Where bodies over 64 kB are kept: a folder, or object storage, so that workers need no shared volume."""

    url: str = Field(default="", pattern=r"^([a-z][a-z0-9+.-]*://[^?#\s]+)?$")
    """Object storage (s3://BUCKET/PREFIX, or another URL of fsspec); empty: the folder `blobs` of the data folder."""
    endpoint: str = Field(default="", pattern=HTTP)
    """URL of an S3 server that is not Amazon's."""
    region: str = Field(default="", max_length=100)
    """Region of the bucket, if the server wants one."""
    access_key: str = Field(default="", max_length=1_000)
    """Access key of S3; empty: the credentials of the environment (AWS_..., a role of the machine or of the pod)."""
    secret_key_file: str = ""
    """File with the secret key of S3."""
    secret_key: SecretStr = secret()
    """Secret key of S3; better as a file, or in the environment."""
    ca: str = ""
    """File with the CA (PEM) that signs the certificate of the S3 server; empty: the system's."""
    timeout: float = Field(default=30.0, gt=0, le=86_400)
    """Time that the storage may take for an answer; a worker without one holds, and is not ready."""
    cache: int = Field(default=1024 * MIB, ge=0, le=1 << 50)
    """Size of the local cache of bodies in object storage; bodies in use, and those on their way into the storage, come on top."""
    options: dict[str, object] = Field(default={})
    """Further options of fsspec for the storage, a table; in the environment NAME=VALUE, separated by commas."""

    @field_validator("options", mode="before")
    @classmethod
    def _pairs(cls, value: Any) -> Any:
        if isinstance(value, str):
            pairs = [one.partition("=") for one in value.split(",") if one.strip()]
            if not all(equals for _, equals, _ in pairs):
                raise mistake("NAME=VALUE pairs, separated by commas")
            return {name.strip(): text.strip() for name, _, text in pairs}
        if not isinstance(value, Mapping):
            raise mistake("a table of options of fsspec")
        if not all(isinstance(one, str | int | float) for one in value.values()):
            raise mistake("an option is text, a number, true or false")
        return value

    @field_validator("url")
    @classmethod
    def _without_login(cls, value: str) -> str:
        if "@" in urlsplit(value).netloc:
            raise mistake("user and password belong to blobs.options")
        if value.startswith("s3://") and not urlsplit(value).netloc:
            raise mistake("a bucket has to be named, as s3://BUCKET/PREFIX")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        """Check what belongs together, then the files."""
        scheme = urlsplit(self.url).scheme
        self._useless("blobs.url", bool(self.url), "options")
        self._useless("blobs.url with s3", scheme == "s3", "endpoint", "region", "access_key", "secret_key")
        self._useless("blobs.endpoint with https", urlsplit(self.endpoint).scheme == "https", "ca")
        self._group("blobs.access_key", bool(self.access_key), "access_key", "secret_key")
        if self.ca:
            check_ca(self.ca, "ca")
        return self
