"""Certificates by the openssl command and key stores by Java's keytool, for tests."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PASSWORD", "Authority", "Identity"]

PASSWORD = "store-secret"


def openssl(*arguments: str | Path, input: str | None = None) -> str:
    return _run("openssl", *arguments, input=input)


def keytool(*arguments: str | Path) -> str:
    return _run("keytool", *arguments)


def _run(*command: str | Path, input: str | None = None) -> str:
    done = subprocess.run(command, input=input, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Identity:
    """A key with its certificate, in several formats."""

    key: Path
    certificate: Path

    @property
    def pem(self) -> Path:
        """Key and certificate in one file, as Kafka reads it."""
        both = self.key.with_suffix(".store.pem")
        if not both.exists():
            both.write_text(self.key.read_text() + self.certificate.read_text())
        return both

    @property
    def encrypted_key(self) -> Path:
        path = self.key.with_suffix(".encrypted.pem")
        if not path.exists():
            openssl(
                "pkcs8", "-topk8", "-in", self.key, "-out", path, "-passout", f"pass:{PASSWORD}"
            )
        return path

    @property
    def pkcs12(self) -> Path:
        path = self.key.with_suffix(".p12")
        if not path.exists():
            openssl(
                "pkcs12", "-export", "-inkey", self.key, "-in", self.certificate, "-name", "own",
                "-out", path, "-passout", f"pass:{PASSWORD}",
            )  # fmt: skip
        return path

    @property
    def jks(self) -> Path:
        """Made by keytool from the PKCS#12 file."""
        path = self.key.with_suffix(".jks")
        if not path.exists():
            keytool(
                "-importkeystore", "-noprompt", "-srckeystore", self.pkcs12,
                "-srcstoretype", "pkcs12", "-srcstorepass", PASSWORD, "-destkeystore", path,
                "-deststoretype", "jks", "-deststorepass", PASSWORD, "-destkeypass", PASSWORD,
            )  # fmt: skip
        return path


class Authority:
    """A CA in a folder of its own."""

    def __init__(self, folder: Path, name: str = "Test CA") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = folder / "ca.key"
        self.certificate = folder / "ca.pem"
        openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "30", "-subj", f"/CN={name}", "-keyout", self._key, "-out", self.certificate,
            # Python's own contexts ask for these since 3.13.
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        )  # fmt: skip

    def issue(
        self,
        name: str,
        subject: str,
        *,
        hosts: str = "DNS:localhost,IP:127.0.0.1",
        days: int = 30,
    ) -> Identity:
        """A certificate for client and server; `subject` as `/C=US/O=Org/CN=name`."""
        key, request = self._folder / f"{name}.key", self._folder / f"{name}.csr"
        certificate, extensions = self._folder / f"{name}.pem", self._folder / f"{name}.ext"
        openssl(
            "req", "-new", "-newkey", "rsa:2048", "-nodes", "-utf8", "-subj", subject,
            "-keyout", key, "-out", request,
        )  # fmt: skip
        extensions.write_text(
            f"subjectAltName={hosts}\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
        )
        openssl(
            "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key,
            "-CAcreateserial", "-days", str(days), "-extfile", extensions, "-out", certificate,
        )  # fmt: skip
        return Identity(key, certificate)

    def trust_store(self, kind: str) -> Path:
        """A trust store by keytool: pkcs12 or jks."""
        path = self._folder / f"trust.{kind}"
        if not path.exists():
            keytool(
                "-importcert", "-noprompt", "-alias", "ca", "-file", self.certificate,
                "-keystore", path, "-storetype", kind, "-storepass", PASSWORD,
            )  # fmt: skip
        return path
