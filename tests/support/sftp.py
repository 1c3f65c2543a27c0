"""OpenSSH's server from Debian's package, for SFTP: on 127.0.0.1, with keys made for the run."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.processes import free_port
from support.waiting import eventually

SERVER = Path("/usr/sbin/sshd")


def sftp_missing() -> str | None:
    return None if SERVER.exists() else "sshd is not here: apt-get install openssh-server"


@dataclass(frozen=True)
class Sftp:
    port: int
    folder: Path

    @property
    def config(self) -> dict[str, str]:
        return {
            "input.location": "sftp",
            "sftp.host": "127.0.0.1",
            "sftp.port": str(self.port),
            "sftp.username": getpass.getuser(),
            "tls.private.key": str(self.folder / "user"),
            "sftp.known.hosts": str(self.folder / "known"),
        }


@contextlib.contextmanager
def running_sftp() -> Iterator[Sftp]:
    with tempfile.TemporaryDirectory(prefix="moldau-sftp-") as name:
        server = Sftp(free_port(), Path(name))
        for key in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(server.folder / key)],
                check=True,
            )
        (server.folder / "known").write_text(
            f"[127.0.0.1]:{server.port} {(server.folder / 'host.pub').read_text()}"
        )
        os.makedirs("/run/sshd", exist_ok=True)
        config = server.folder / "sshd_config"
        config.write_text(
            f"Port {server.port}\nListenAddress 127.0.0.1\nHostKey {server.folder}/host\n"
            f"AuthorizedKeysFile {server.folder}/user.pub\nStrictModes no\nUsePAM no\n"
            "PermitRootLogin yes\nSubsystem sftp internal-sftp\nPidFile none\n"
        )
        process = subprocess.Popen(
            [SERVER, "-D", "-e", "-f", str(config)], stderr=subprocess.DEVNULL
        )
        try:
            eventually(lambda: _listens(server.port), what="sshd listens")
            yield server
        finally:
            process.terminate()
            process.wait(30)


def _listens(port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
