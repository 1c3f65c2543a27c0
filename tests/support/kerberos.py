"""A Kerberos realm of its own in a folder: krb5-kdc from Debian, on a free port."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from support.ports import free_port

REALM = "MOLDAU.TEST"
TOOLS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def kerberos_missing() -> str | None:
    """Why no realm can be made here, or None."""
    for tool in TOOLS:
        if shutil.which(tool, path=PATH) is None:
            return (
                f"no {tool} on this machine: apt-get install krb5-kdc krb5-admin-server krb5-user"
            )
    try:
        import gssapi  # noqa: F401
    except (ImportError, OSError) as error:
        return f"the package gssapi cannot be used: {error}"
    return None


class Realm:
    """`with` starts its key distribution centre."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self.config = folder / "krb5.conf"
        self.config.write_text(
            f"""[libdefaults]
 default_realm = {REALM}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {REALM} = {{
  kdc = 127.0.0.1:{self.port}
 }}
"""
        )
        (folder / "kdc.conf").write_text(
            f"""[kdcdefaults]
 kdc_listen = 127.0.0.1:{self.port}
 kdc_tcp_listen = 127.0.0.1:{self.port}
[realms]
 {REALM} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/kadm5.acl
 }}
"""
        )
        self.environment = os.environ | {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "PATH": PATH,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, *command: str) -> None:
        ended = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"

    def keytab(self, principal: str) -> Path:
        """A new principal, and its keys in a file."""
        path = self.folder / f"{principal.replace('/', '-')}.keytab"
        self.run("kadmin.local", "-q", f"addprinc -randkey {principal}@{REALM}")
        self.run("kadmin.local", "-q", f"ktadd -k {path} {principal}@{REALM}")
        return path

    def __enter__(self) -> Realm:
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master-password")
        with (self.folder / "kdc.log").open("ab") as output:
            self._process = subprocess.Popen(
                ["krb5kdc", "-n"], env=self.environment, stdout=output, stderr=output
            )
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return self
            except OSError:
                assert time.monotonic() < deadline, (self.folder / "kdc.log").read_text()
                time.sleep(0.02)

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
