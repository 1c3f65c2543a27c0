"""A connection to an SFTP server, which source and sink share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.connect.api import ConnectError, RetriableError
from moldau.connect.connectors.support.libraries import library
from moldau.connect.connectors.support.web import plain


class SftpClient:
    def __init__(self, config: Mapping[str, Any]) -> None:
        paramiko = library("paramiko")
        self._client: Any = paramiko.SSHClient()
        if config["sftp.known.hosts"]:
            self._client.load_host_keys(config["sftp.known.hosts"])
        else:
            self._client.load_system_host_keys()
        try:
            self._client.connect(
                config["sftp.host"],
                config["sftp.port"],
                config["sftp.username"],
                plain(config["sftp.password"]),
                key_filename=config["tls.private.key"] or None,
                timeout=20,
                allow_agent=False,
                look_for_keys=False,
            )
            self.sftp: Any = self._client.open_sftp()
        except paramiko.AuthenticationException as error:
            raise ConnectError(f"SFTP: {error}") from error
        except (OSError, paramiko.SSHException) as error:
            raise RetriableError(f"SFTP: {error}") from error

    def close(self) -> None:
        self._client.close()
