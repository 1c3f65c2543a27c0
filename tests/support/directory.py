"""An LDAP directory of its own in a folder: slapd from Debian, on free ports of 127.0.0.1."""

from __future__ import annotations

import shutil
import socket
import subprocess
from contextlib import closing
from pathlib import Path

from support.certificates import Authority
from support.ports import free_port
from support.waiting import eventually

SUFFIX = "dc=example,dc=com"
PEOPLE = f"ou=people,{SUFFIX}"
PATH = "/usr/sbin:/usr/bin"
SCHEMAS = Path("/etc/ldap/schema")


def slapd_missing() -> str | None:
    """Why no directory can be made here, or None."""
    if shutil.which("slapd", path=PATH) is None or not SCHEMAS.is_dir():
        return "no slapd on this machine: apt-get install slapd"
    return None


class Directory:
    """`with` starts it. Its certificate is for 127.0.0.1 and localhost."""

    def __init__(self, folder: Path, users: dict[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.authority = Authority(folder / "ca")
        own = self.authority.issue("directory", "/O=Org/CN=directory")
        self.port, self.tls_port = free_port(), free_port()
        self._config = folder / "slapd.conf"
        (folder / "data").mkdir()
        schemas = "".join(
            f"include {SCHEMAS}/{each}.schema\n" for each in ("core", "cosine", "inetorgperson")
        )
        self._config.write_text(
            f"""{schemas}modulepath /usr/lib/ldap
moduleload back_mdb
TLSCACertificateFile {self.authority.certificate}
TLSCertificateFile {own.pem}
TLSCertificateKeyFile {own.pem}
database mdb
suffix "{SUFFIX}"
directory {folder}/data
"""
        )
        entries = [
            f"dn: {SUFFIX}\nobjectClass: dcObject\nobjectClass: organization\no: Org\n",
            f"dn: {PEOPLE}\nobjectClass: organizationalUnit\n",
            *(
                f"dn: uid={name},{PEOPLE}\nobjectClass: inetOrgPerson\ncn: {name}\nsn: {name}\n"
                f"userPassword: {password}\n"
                for name, password in users.items()
            ),
        ]
        (folder / "users.ldif").write_text("\n".join(entries))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Directory:
        filled = subprocess.run(
            ["slapadd", "-f", self._config, "-l", self._folder / "users.ldif"],
            env={"PATH": PATH}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert filled.returncode == 0, filled.stderr
        addresses = f"ldap://127.0.0.1:{self.port} ldaps://127.0.0.1:{self.tls_port}"
        with (self._folder / "slapd.log").open("ab") as output:
            self._process = subprocess.Popen(
                ["slapd", "-f", self._config, "-h", addresses, "-d", "0"],
                env={"PATH": PATH}, stdout=output, stderr=output,
            )  # fmt: skip
        eventually(lambda: _listens(self.port) and _listens(self.tls_port), what="slapd listens")
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
