"""S3 through Arrow, which needs nothing else to be installed."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from moldau.connect.api import ConfigDef, ConnectError, Importance, Kind, RetriableError
from moldau.connect.connectors.support.libraries import library
from moldau.connect.connectors.support.web import plain

_AWAY: Final = (
    "AWS Error NETWORK_CONNECTION", "SERVICE_UNAVAILABLE", "SLOW_DOWN", "THROTTLING",
    "REQUEST_TIMEOUT", "INTERNAL_FAILURE", "curlCode",
)  # fmt: skip
#: A storage that was restarted may have lost an upload or parts of it that it had acknowledged. A
#: new attempt begins with a new upload.
_UPLOAD_LOST: Final = ("InvalidPart", "NoSuchUpload", "NO_SUCH_UPLOAD")


def define_s3(config: ConfigDef) -> ConfigDef:
    return (
        config.define("s3.bucket.name", Kind.STRING, importance=Importance.HIGH, group="S3",
                      doc="The bucket")
        .define("s3.region", Kind.STRING, "us-west-2", group="S3", doc="Its region")
        .define("store.url", Kind.STRING, None, group="S3",
                doc="Address of the storage; empty: Amazon's")
        .define("aws.access.key.id", Kind.STRING, "", importance=Importance.HIGH, group="S3",
                doc="Access key; empty: from the environment, as Amazon's tools find it")
        .define("aws.secret.access.key", Kind.PASSWORD, None, importance=Importance.HIGH,
                group="S3", doc="Secret key")
        .define("s3.compression.type", Kind.STRING, "none", group="S3",
                doc="none or gzip, for JSON and bytes")
        .define("s3.proxy.url", Kind.STRING, "", group="S3",
                doc="Proxy for all requests: http://HOST:PORT")
        .define("s3.proxy.user", Kind.STRING, None, group="S3", doc="Its user")
        .define("s3.proxy.password", Kind.PASSWORD, None, group="S3", doc="Its password")
    )  # fmt: skip


#: What an object may be for others than its owner, by Amazon's names.
ACLS: Final = (
    "private", "public-read", "public-read-write", "authenticated-read", "aws-exec-read",
    "bucket-owner-read", "bucket-owner-full-control",
)  # fmt: skip


def _proxy(config: dict[str, Any]) -> dict[str, Any]:
    parts = urlsplit(config["s3.proxy.url"])
    found: dict[str, Any] = {
        "scheme": parts.scheme or "http",
        "host": parts.hostname or "",
        "port": parts.port or (443 if parts.scheme == "https" else 80),
    }
    if user := config["s3.proxy.user"] or parts.username:
        password = plain(config["s3.proxy.password"]) or parts.password or ""
        found |= {"username": user, "password": password}
    return found


class S3:
    """Objects of a bucket, by path."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._fs = library("pyarrow.fs")
        self.bucket = config["s3.bucket.name"]
        options: dict[str, Any] = {
            "region": config["s3.region"], "connect_timeout": 10, "request_timeout": 60,
        }  # fmt: skip
        if config["store.url"]:
            parts = urlsplit(config["store.url"])
            options |= {"endpoint_override": parts.netloc, "scheme": parts.scheme}
        if config["aws.access.key.id"]:
            options |= {
                "access_key": config["aws.access.key.id"],
                "secret_key": plain(config["aws.secret.access.key"]) or "",
            }
        if config["s3.proxy.url"]:
            options["proxy_options"] = _proxy(config)
        acl = config.get("s3.acl.canned")
        self._metadata = {"ACL": acl} if acl else None
        self._client = self._fs.S3FileSystem(**options)

    def write(self, path: str, data: bytes) -> None:
        try:
            # An object appears when its stream is closed, never in part.
            with self._client.open_output_stream(
                f"{self.bucket}/{path}", compression=None, metadata=self._metadata
            ) as out:
                out.write(data)
        except OSError as error:
            raise self._failure(error, f"writing {path}") from error

    def read(self, path: str) -> bytes:
        try:
            with self._client.open_input_stream(f"{self.bucket}/{path}", compression=None) as data:
                found: bytes = data.read()
                return found
        except OSError as error:
            raise self._failure(error, f"reading {path}") from error

    def list(self, folder: str) -> list[str]:
        """The paths of all objects below a folder, in order."""
        selector = self._fs.FileSelector(
            f"{self.bucket}/{folder}", recursive=True, allow_not_found=True
        )
        try:
            found = self._client.get_file_info(selector)
        except OSError as error:
            raise self._failure(error, f"listing {folder}") from error
        return sorted(
            each.path.removeprefix(f"{self.bucket}/")
            for each in found
            if each.type == self._fs.FileType.File
        )

    def _failure(self, error: OSError, what: str) -> ConnectError:
        passing = any(each in str(error) for each in (*_AWAY, *_UPLOAD_LOST))
        kind = RetriableError if passing else ConnectError
        return kind(f"{what} in bucket {self.bucket} failed: {error}")

    def close(self) -> None: ...
