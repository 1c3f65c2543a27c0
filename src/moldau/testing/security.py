"""How a cluster under test is secured, and what its clients need.

With SASL every user may log in by PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. `admin`, who may do
everything, is always there: nodes and the cluster's own client log in as this user. ACLs hold, but
a resource without any is open to everybody, so that a test begins with what it is about.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from moldau.security.machine.jaas import jaas_line
from moldau.testing.certificates import Certificates, make_certificates

__all__ = ["ClusterSecurity", "SecurityProtocol"]

SecurityProtocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
ADMIN: Final = "admin"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_SCRAM_ITERATIONS: Final = 4096


class ClusterSecurity:
    """Of one cluster; the certificates are there once `make_files` has run."""

    def __init__(self, protocol: str, users: Mapping[str, str] | None) -> None:
        if protocol not in get_args(SecurityProtocol):
            known = ", ".join(get_args(SecurityProtocol))
            raise ValueError(f"security={protocol!r}: use one of {known}")
        self.protocol = protocol
        self.uses_sasl = protocol.startswith("SASL_")
        if users and not self.uses_sasl:
            raise ValueError(
                f"users={list(users)}: only with security='SASL_SSL' or 'SASL_PLAINTEXT'"
            )
        self._passwords = {ADMIN: secrets.token_urlsafe(16), **(users or {})}
        self.certificates: Certificates | None = None

    def make_files(self, folder: Path) -> None:
        if self.protocol.endswith("SSL"):
            self.certificates = make_certificates(folder)

    @property
    def node_properties(self) -> dict[str, str]:
        properties: dict[str, str] = {}
        if self.certificates is not None:
            properties |= self.certificates.node_properties
        if self.uses_sasl:
            own = {"username": ADMIN, "password": self._passwords[ADMIN]}
            users = {f"user_{name}": password for name, password in self._passwords.items()}
            properties |= {
                "sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM)),
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                "sasl.mechanism.controller.protocol": "PLAIN",
                "sasl.jaas.config": jaas_line("PLAIN", own | users),
                "authorizer.class.name": "StandardAuthorizer",
                "super.users": f"User:{ADMIN}",
                "allow.everyone.if.no.acl.found": "true",
            }
        return properties

    def client_config(self, user: str = ADMIN, mechanism: str = "PLAIN") -> dict[str, str]:
        """Kafka's settings for a client that logs in as this user."""
        config = {} if self.certificates is None else dict(self.certificates.client_config)
        if self.protocol != "PLAINTEXT":
            config["security.protocol"] = self.protocol
        if self.uses_sasl:
            if user not in self._passwords:
                known = ", ".join(self._passwords)
                raise ValueError(f"user={user!r}: the users of this cluster are {known}")
            options = {"username": user, "password": self._passwords[user]}
            config["sasl.mechanism"] = mechanism
            config["sasl.jaas.config"] = jaas_line(mechanism, options)
        elif user != ADMIN:
            raise ValueError(
                f"user={user!r}: this cluster has no users, security={self.protocol!r}"
            )
        return config

    def add_scram_users(self, config: Mapping[str, str]) -> None:
        """PLAIN has its users in the configuration; those of SCRAM are in the metadata log."""
        from moldau.client import Admin
        from moldau.client.admin import (
            ScramCredentialInfo,
            ScramMechanism,
            UserScramCredentialUpsertion,
        )

        kinds = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        changes = [
            UserScramCredentialUpsertion(
                name, ScramCredentialInfo(kind, _SCRAM_ITERATIONS), password.encode()
            )
            for name, password in self._passwords.items()
            for kind in kinds
        ]
        with Admin(config) as admin:
            admin.alter_user_scram_credentials(changes)
