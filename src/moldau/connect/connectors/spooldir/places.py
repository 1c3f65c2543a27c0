"""Where files are: a directory here, or on an SFTP or FTP server."""

from __future__ import annotations

import contextlib
import ftplib
import io
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from moldau.connect.api import ConfigError, ConnectError, RetriableError
from moldau.connect.connectors.support.ssh import SftpClient
from moldau.connect.connectors.support.web import plain


class Found(NamedTuple):
    name: str
    size: int
    modified_s: float


class Place(Protocol):
    def list(self) -> list[Found]: ...

    def read(self, name: str) -> bytes: ...

    def move(self, name: str, folder: str) -> None: ...

    def delete(self, name: str) -> None: ...

    def close(self) -> None: ...


class LocalPlace:
    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        if not self._folder.is_dir():
            raise ConfigError.invalid("input.path", folder, "must be a directory")

    def list(self) -> list[Found]:
        found = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file():
                        status = entry.stat()
                        found.append(Found(entry.name, status.st_size, status.st_mtime))
        return found

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def move(self, name: str, folder: str) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        shutil.move(self._folder / name, Path(folder) / name)

    def delete(self, name: str) -> None:
        (self._folder / name).unlink()

    def close(self) -> None: ...


class SftpPlace:
    def __init__(self, config: Mapping[str, Any]) -> None:
        self._folder = config["input.path"]
        self._client = SftpClient(config)
        self._sftp = self._client.sftp

    def list(self) -> list[Found]:
        return [
            Found(each.filename, each.st_size, each.st_mtime)
            for each in self._sftp.listdir_attr(self._folder)
            if each.st_mode & 0o170000 == 0o100000
        ]

    def read(self, name: str) -> bytes:
        with self._sftp.open(f"{self._folder}/{name}", "rb") as file:
            file.prefetch()
            found: bytes = file.read()
            return found

    def move(self, name: str, folder: str) -> None:
        with contextlib.suppress(OSError):
            self._sftp.mkdir(folder)
        self._sftp.posix_rename(f"{self._folder}/{name}", f"{folder}/{name}")

    def delete(self, name: str) -> None:
        self._sftp.remove(f"{self._folder}/{name}")

    def close(self) -> None:
        self._client.close()


class FtpPlace:
    def __init__(self, config: Mapping[str, Any]) -> None:
        self._folder = config["input.path"]
        self._ftp = ftplib.FTP_TLS(timeout=30) if config["ftp.tls"] else ftplib.FTP(timeout=30)
        try:
            self._ftp.connect(config["sftp.host"], config["sftp.port"])
            self._ftp.login(config["sftp.username"] or "", plain(config["sftp.password"]) or "")
            if isinstance(self._ftp, ftplib.FTP_TLS):
                self._ftp.prot_p()
        except ftplib.error_perm as error:
            raise ConnectError(f"FTP: {error}") from error
        except (OSError, ftplib.Error) as error:
            raise RetriableError(f"FTP: {error}") from error

    def list(self) -> list[Found]:
        found = []
        for name, facts in self._ftp.mlsd(self._folder, ["type", "size", "modify"]):
            if facts.get("type") == "file":
                moment = time.strptime(facts["modify"][:14], "%Y%m%d%H%M%S")
                found.append(Found(name, int(facts["size"]), float(_seconds(moment))))
        return found

    def read(self, name: str) -> bytes:
        out = io.BytesIO()
        self._ftp.retrbinary(f"RETR {self._folder}/{name}", out.write)
        return out.getvalue()

    def move(self, name: str, folder: str) -> None:
        with contextlib.suppress(ftplib.Error):
            self._ftp.mkd(folder)
        self._ftp.rename(f"{self._folder}/{name}", f"{folder}/{name}")

    def delete(self, name: str) -> None:
        self._ftp.delete(f"{self._folder}/{name}")

    def close(self) -> None:
        with contextlib.suppress(OSError, ftplib.Error):
            self._ftp.quit()


def _seconds(moment: time.struct_time) -> int:
    import calendar

    return calendar.timegm(moment)
