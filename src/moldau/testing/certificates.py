"""Certificates for a cluster under test: a CA of its own, one for the nodes and one for clients."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

from moldau.installation import pip_install
from moldau.security.certificates import Authority, write_secret
from moldau.testing.errors import BrokerError

__all__ = ["Certificates", "make_certificates"]

_LIFE = datetime.timedelta(days=7)
_HOSTS = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in PEM. `client_store` has the key and the certificate of CN=client."""

    ca: Path
    node_store: Path
    client_store: Path

    @property
    def node_properties(self) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.node_store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "ssl.client.auth": "requested",
        }

    @property
    def client_config(self) -> dict[str, str]:
        """Kafka's settings for a client, which has no certificate of its own."""
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
        }


def make_certificates(folder: Path) -> Certificates:
    """New ones in this directory. Needs the package cryptography."""
    try:
        authority = Authority("Test CA", life=_LIFE)
    except ImportError:
        raise BrokerError(
            f'security="SSL" needs the package cryptography: {pip_install("security")}'
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    files = Certificates(folder / "ca.pem", folder / "node.pem", folder / "client.pem")
    files.ca.write_bytes(authority.certificate)
    for name, path in (("node", files.node_store), ("client", files.client_store)):
        write_secret(path, authority.issue({"CN": name}, _HOSTS))
    return files
