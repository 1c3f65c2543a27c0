"""HDFS through WebHDFS, the HTTP interface of its name node."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from moldau.connect.api import ConfigError, ConnectError, RetriableError
from moldau.connect.connectors.support.web import Answer, WebClient
from moldau.data import json_text

_CREATED: Final = 201
_REDIRECTED: Final = 307
#: The name node answers 403 while it starts and is in safe mode, and while nobody is active.
_PASSING: Final = ("SafeModeException", "StandbyException", "RetriableException")


def web_address(url: str, http_port: int) -> str:
    """Where WebHDFS answers: `hdfs://HOST:PORT` names the other interface of the same host."""
    parts = urlsplit(url)
    if not parts.hostname or parts.scheme not in _SCHEMES:
        raise ConfigError.invalid(
            "hdfs.url", url, "must be hdfs://HOST[:PORT] or webhdfs://HOST:PORT"
        )
    secure = parts.scheme in ("https", "swebhdfs")
    port = http_port if parts.scheme == "hdfs" or parts.port is None else parts.port
    return f"{'https' if secure else 'http'}://{parts.hostname}:{port}"


_SCHEMES: Final = ("hdfs", "webhdfs", "swebhdfs", "http", "https")


class WebHdfs:
    """Files of a cluster, by absolute path."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._user = config["hdfs.user"]
        address = web_address(config["hdfs.url"], config["hdfs.http.port"])
        self._client = self._to(address)
        #: Data nodes take the contents of files.
        self._nodes: dict[str, WebClient] = {}

    def _to(self, address: str) -> WebClient:
        return WebClient(
            address,
            key="hdfs.url",
            timeout_s=self._config["read.timeout.ms"] / 1000,
            trusted=self._config["ssl.truststore.location"],
            verify_hostname=self._config["ssl.verify.hostname"],
        )

    def write(self, path: str, data: bytes) -> None:
        """Create a file or replace it. Until this returns, a part of it may be there."""
        asked = self._ask("PUT", path, "CREATE", overwrite="true", taken=(_REDIRECTED,))
        target = urlsplit(asked.headers.get("location", ""))
        if not target.hostname:
            raise ConnectError(f"{self._client.shown} names no data node for {path}")
        address = f"{target.scheme}://{target.netloc}"
        node = self._nodes.get(address)
        if node is None:
            node = self._nodes[address] = self._to(address)
        answer = node.request(
            "PUT",
            f"{target.path}?{target.query}",
            data,
            {"Content-Type": "application/octet-stream"},
            taken=(403,),
        )
        if answer.status != _CREATED:
            raise self._failure(answer, f"writing {path}")

    def make_folder(self, path: str) -> None:
        self._ask("PUT", path, "MKDIRS")

    def rename(self, path: str, target: str) -> None:
        """Give a file its name, in place of one that may be there, at once."""
        self._ask("PUT", path, "RENAME", destination=target, renameoptions="OVERWRITE")

    def delete(self, path: str) -> None:
        """Also what is below it; nothing happens if it is not there."""
        self._ask("DELETE", path, "DELETE", recursive="true")

    def exists(self, path: str) -> bool:
        return self._ask("GET", path, "GETFILESTATUS", taken=(404,)).status != 404

    def read(self, path: str) -> bytes | None:
        """The contents of a file; None if it is not there."""
        asked = self._ask("GET", path, "OPEN", taken=(404, _REDIRECTED))
        if asked.status == 404:
            return None
        target = urlsplit(asked.headers.get("location", ""))
        node = self._to(f"{target.scheme}://{target.netloc}")
        try:
            answer = node.request("GET", f"{target.path}?{target.query}", taken=(403,))
            if answer.status != 200:
                raise self._failure(answer, f"reading {path}")
            return answer.body
        finally:
            node.close()

    def names(self, folder: str) -> list[str]:
        """The paths of all files below a folder."""
        answer = self._ask("GET", folder, "LISTSTATUS", taken=(404,))
        if answer.status == 404:
            return []
        found = []
        for each in json_text.parse(answer.body)["FileStatuses"]["FileStatus"]:
            path = f"{folder}/{each['pathSuffix']}"
            found += self.names(path) if each["type"] == "DIRECTORY" else [path]
        return found

    def _ask(
        self, method: str, path: str, operation: str, *, taken: tuple[int, ...] = (), **options: str
    ) -> Answer:
        query = {"op": operation, **options}
        if self._user:
            query["user.name"] = self._user
        answer = self._client.request(
            method, f"/webhdfs/v1{quote(path)}?{urlencode(query)}", taken=(403, *taken)
        )
        if answer.status >= 300 and answer.status not in taken:
            raise self._failure(answer, f"{operation} {path}")
        return answer

    def _failure(self, answer: Answer, what: str) -> ConnectError:
        passes = answer.status >= 500 or any(each in answer.text for each in _PASSING)
        kind = RetriableError if passes else ConnectError
        return kind(f"HDFS: {what} was answered with {answer.status}: {answer.text[:500]}")

    def close(self) -> None:
        for each in (self._client, *self._nodes.values()):
            each.close()
