"""All there is to log in with, at one place: a CA, an issuer of tokens and a Kerberos realm, what
servers write into their properties for them, and what clients do.

The same user, alice, can log in by every mechanism, so that the same ACLs are hers.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from moldau.client import Admin
from moldau.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    DelegationToken,
    NewTopic,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from support.certificates import Authority
from support.issuer import AUDIENCE, ISSUER, Issuer
from support.kerberos import REALM, Realm, kerberos_missing
from support.secured import PACKAGE, PLAIN_MODULE, SCRAM_MODULE, jaas
from support.waiting import eventually

__all__ = [
    "DELEGATION_TOKEN",
    "GROUPS",
    "HIDDEN",
    "MECHANISMS",
    "OPEN",
    "READABLE",
    "SCRAM",
    "Site",
    "secured_site",
]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
DELEGATION_TOKEN = "DELEGATION-TOKEN"
"""By SCRAM-SHA-256."""
OAUTH_MODULE = f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule"
KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
SERVICE = "kafka/localhost"
SCRAM = tuple(
    f"{mechanism}=[name={name},password={name}-secret]"
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    for name in ("alice", "node")
)
# Alice may write and read the first, read the second, and know nothing of the third.
OPEN, READABLE, HIDDEN = "open", "readable", "hidden"
GROUPS = "alice-"
"""What the groups' names begin with that she may use."""


class Site:
    """Made by `secured_site`."""

    def __init__(self, folder: Path, issuer: Issuer, realm: Realm | None) -> None:
        self.issuer = issuer
        self.realm = realm
        self.authority = Authority(folder / "ca")
        self._broker = self.authority.issue("broker", "/O=Org/CN=broker")
        issuer.clients |= {name: f"{name}-secret" for name in ("alice", "node")}
        self._tokens: dict[str, DelegationToken] = {}
        self.ticket_cache = folder / "tickets"
        if realm is not None:
            self._service_keys = realm.keytab(SERVICE)
            self._alices_keys = realm.keytab("alice")
            realm.run(
                *("kinit", "-k", "-t", str(self._alices_keys)),
                *("-c", str(self.ticket_cache), f"alice@{REALM}"),
            )

    @property
    def mechanisms(self) -> Sequence[str]:
        return MECHANISMS if self.realm is not None else MECHANISMS[:-1]

    @property
    def java_properties(self) -> list[str]:
        """System properties of Java, for servers and clients."""
        urls = f"{self.issuer.jwks_url},{self.issuer.token_url}"
        return [
            f"org.apache.kafka.sasl.oauthbearer.allowed.urls={urls}",
            f"java.security.krb5.conf={self.realm.config if self.realm else ''}",
        ]

    # Servers.

    def server_settings(
        self, listener: str, *, between_brokers: str = "PLAIN", to_controllers: str = "PLAIN"
    ) -> dict[str, str]:
        """A listener with every mechanism, a controller listener with one, and the authorizer."""
        settings = {
            "listener.security.protocol.map": f"{listener}:SASL_SSL,CONTROLLER:SASL_SSL",
            "inter.broker.listener.name": listener,
            "sasl.mechanism.inter.broker.protocol": between_brokers,
            "sasl.mechanism.controller.protocol": to_controllers,
            "sasl.enabled.mechanisms": ",".join(self.mechanisms),
            "listener.name.controller.sasl.enabled.mechanisms": to_controllers,
            "sasl.kerberos.service.name": "kafka",
            "sasl.oauthbearer.jwks.endpoint.url": self.issuer.jwks_url,
            "sasl.oauthbearer.token.endpoint.url": self.issuer.token_url,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._broker.pem),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin;User:node;User:kafka",
            "auto.create.topics.enable": "false",
            "delegation.token.secret.key": "the key of all tokens",
        }
        for name in (listener.lower(), "controller"):
            oauth = f"listener.name.{name}.oauthbearer.sasl"
            handlers = f"{PACKAGE}.oauthbearer.OAuthBearer"
            settings[f"{oauth}.server.callback.handler.class"] = (
                f"{handlers}ValidatorCallbackHandler"
            )
            settings[f"{oauth}.login.callback.handler.class"] = f"{handlers}LoginCallbackHandler"
            for mechanism in self.mechanisms:
                key = f"listener.name.{name}.{mechanism.lower()}.sasl.jaas.config"
                settings[key] = self._server_line(mechanism)
        return settings

    def _server_line(self, mechanism: str) -> str:
        match mechanism:
            case "PLAIN":
                users = " ".join(
                    f'user_{name}="{name}-secret"' for name in ("admin", "alice", "node")
                )
                return f'{PLAIN_MODULE} required username="node" password="node-secret" {users};'
            case "OAUTHBEARER":
                return f'{OAUTH_MODULE} required clientId="node" clientSecret="node-secret";'
            case "GSSAPI":
                return _kerberos_line(self._service_keys, SERVICE)
            case _:
                return f'{SCRAM_MODULE} required username="node" password="node-secret";'

    # Clients.

    def client_settings(
        self, bootstrap: str, mechanism: str, name: str = "alice"
    ) -> dict[str, str]:
        """Of moldau.client and of Java's clients."""
        settings = {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "sasl.mechanism": mechanism,
        }
        match mechanism:
            case "OAUTHBEARER":
                line = f'{OAUTH_MODULE} required clientId="{name}" clientSecret="{name}-secret";'
                settings["sasl.oauthbearer.token.endpoint.url"] = self.issuer.token_url
            case "GSSAPI":
                line = _kerberos_line(self._alices_keys, name)
                settings["sasl.kerberos.service.name"] = "kafka"
            case _ if mechanism == DELEGATION_TOKEN:
                settings["sasl.mechanism"] = "SCRAM-SHA-256"
                token = self._tokens[bootstrap]
                hmac = base64.b64encode(token.hmac).decode()
                line = jaas("SCRAM-SHA-256", token.token_info.token_id, hmac, tokenauth="true")
            case _:
                line = jaas(mechanism, name, f"{name}-secret")
        return settings | {"sasl.jaas.config": line}

    def prepare(self, bootstrap: str, partitions: int = 1) -> None:
        """Topics, what alice may do with them, and a token of hers; known to every broker."""
        settings = self.client_settings(bootstrap, "PLAIN", "admin")
        bindings = [
            _allow(ResourceType.TOPIC, OPEN, AclOperation.WRITE),
            _allow(ResourceType.TOPIC, OPEN, AclOperation.READ),
            _allow(ResourceType.TOPIC, READABLE, AclOperation.READ),
            _allow(ResourceType.GROUP, GROUPS, AclOperation.READ, PatternType.PREFIXED),
        ]
        addresses = bootstrap.split(",")
        with Admin(settings | {"default.api.timeout.ms": "120000"}) as admin:
            eventually(
                lambda: len(admin.describe_cluster().nodes) == len(addresses),
                what="all brokers are there",
            )
            admin.create_topics([NewTopic(name, partitions) for name in (OPEN, READABLE, HIDDEN)])
            admin.create_acls(bindings)
        with Admin(self.client_settings(bootstrap, "PLAIN")) as admin:
            token = self._tokens[bootstrap] = admin.create_delegation_token()
        for address in addresses:
            with Admin(settings | {"bootstrap.servers": address}) as admin:
                _wait_until_known(admin, bindings, token)


def _wait_until_known(admin: Admin, bindings: list[AclBinding], token: DelegationToken) -> None:
    eventually(lambda: len(admin.describe_acls()) == len(bindings), what="the ACLs are in force")
    eventually(
        lambda: [each.hmac for each in admin.describe_delegation_token()] == [token.hmac],
        what="the token is known",
    )


def _kerberos_line(keys: Path, name: str) -> str:
    return (
        f"{KERBEROS_MODULE} required useKeyTab=true storeKey=true "
        f'keyTab="{keys}" principal="{name}@{REALM}";'
    )


def _allow(
    kind: ResourceType,
    name: str,
    operation: AclOperation,
    pattern: PatternType = PatternType.LITERAL,
) -> AclBinding:
    return AclBinding(
        ResourcePattern(kind, name, pattern),
        AccessControlEntry("User:alice", "*", operation, AclPermissionType.ALLOW),
    )


@contextmanager
def secured_site(folder: Path) -> Iterator[Site]:
    """With a realm where Kerberos is installed; this process and those it starts use it."""
    with ExitStack() as stack:
        issuer = stack.enter_context(Issuer())
        realm = None
        if kerberos_missing() is None:
            realm = stack.enter_context(Realm(folder / "realm"))
        site = Site(folder, issuer, realm)
        if realm is not None:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            patch.setenv("KRB5_CONFIG", str(realm.config))
            patch.setenv("KRB5CCNAME", f"FILE:{site.ticket_cache}")
        yield site
