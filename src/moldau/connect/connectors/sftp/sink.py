"""The SFTP sink: topics to files of a server, exactly once, as files are named and cut by what is
in them."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Mapping
from typing import Any, Final

from moldau.connect.api import (
    ConfigDef,
    ConfigValue,
    Importance,
    Kind,
    Password,
    Range,
    RetriableError,
    SinkTask,
)
from moldau.connect.connectors.files.config import check_storage, define_storage, format_options
from moldau.connect.connectors.files.formats import Format, make_format
from moldau.connect.connectors.files.sink import FilesSinkTask, Storage
from moldau.connect.connectors.support.plain import PlainSink
from moldau.connect.connectors.support.ssh import SftpClient

CONFIG: Final = (
    define_storage(ConfigDef(), format_class="AvroFormat")
    .define("sftp.host", Kind.STRING, importance=Importance.HIGH, group="Server", doc="Host")
    .define("sftp.port", Kind.INT, 22, validator=Range(1, 65535), group="Server", doc="Its port")
    .define("sftp.username", Kind.STRING, "", importance=Importance.HIGH, group="Server",
            doc="User")
    .define("sftp.password", Kind.PASSWORD, Password(""), group="Server", doc="Its password")
    .define("tls.private.key", Kind.STRING, "", group="Server", doc="File with the key")
    .define("sftp.known.hosts", Kind.STRING, "", group="Server",
            doc="File with the keys of hosts; empty: the user's own")
    .define("sftp.working.dir", Kind.STRING, "", group="Server",
            doc="Directory that topics.dir is in; empty: the user's")
    .define("compression.type", Kind.STRING, "none", group="Storage",
            doc="none or gzip, for JSON and text")
)  # fmt: skip


class SftpSinkConnector(PlainSink):
    DESCRIPTION = "Topics to files of an SFTP server: Avro, Parquet, JSON or text"
    SETTINGS = CONFIG

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(props)
        check_storage(values, "compression.type")
        return values

    def task_class(self) -> type[SinkTask]:
        return SftpSinkTask


class SftpStorage:
    """A file is written under another name and renamed, so it is there as a whole."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._client: SftpClient | None = None

    def write(self, path: str, data: bytes) -> None:
        target = posixpath.join(self._config["sftp.working.dir"], path)
        try:
            if self._client is None:
                self._client = SftpClient(self._config)
            sftp = self._client.sftp
            self._make_folders(sftp, posixpath.dirname(target))
            with sftp.open(f"{target}.tmp", "wb") as file:
                file.set_pipelined(True)
                file.write(data)
            sftp.posix_rename(f"{target}.tmp", target)
        except (OSError, EOFError) as error:
            self.close()
            raise RetriableError(f"SFTP: writing {target}: {error}") from error

    @staticmethod
    def _make_folders(sftp: Any, folder: str) -> None:
        try:
            sftp.stat(folder)
            return
        except FileNotFoundError:
            pass
        path = "/" if folder.startswith("/") else ""
        for each in filter(None, folder.split("/")):
            path = posixpath.join(path, each)
            with contextlib.suppress(OSError):
                sftp.mkdir(path)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


class SftpSinkTask(FilesSinkTask):
    def parse(self, props: Mapping[str, str]) -> dict[str, Any]:
        return CONFIG.parse(props)

    def open_storage(self, config: dict[str, Any]) -> tuple[Storage, Format]:
        return SftpStorage(config), make_format(
            config["format.class"], format_options(config, "compression.type")
        )
