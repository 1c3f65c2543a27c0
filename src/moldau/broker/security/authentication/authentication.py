"""The logins of a node's listeners, as its configuration wants them.

Decided here: which mechanisms a listener has and where each finds its users:
`listener.name.<listener>.<mechanism>.sasl.jaas.config`, then the same key without the mechanism,
then `sasl.jaas.config`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from moldau.broker.config import BrokerConfig, Listener
from moldau.broker.config.listener_settings import listener_prefix, listener_settings
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.interface import FrameReceiver
from moldau.broker.network.transport_layer import LoginObserver
from moldau.broker.security.authentication.credentials import ImageCredentials, NoCredentials
from moldau.broker.security.authentication.gate import SaslGate
from moldau.broker.security.authentication.kerberos_server import kerberos_factory
from moldau.broker.security.authentication.listener_login import (
    ListenerLogin,
    authorized_user,
)
from moldau.broker.security.authentication.mechanism import CredentialSource, MechanismFactory
from moldau.broker.security.authentication.oauth_server import OAuthServer
from moldau.broker.security.authentication.plain_server import PlainServer, PlainUsers
from moldau.broker.security.principal_builders import load_principal_builder
from moldau.clock import Clock
from moldau.config.errors import ConfigError
from moldau.config.values import Password
from moldau.security.classes import KAFKAS_OWN, make_handler
from moldau.security.jwt_keys import JwtValidator
from moldau.security.machine.jaas import JaasEntry, example_line, find_entry
from moldau.security.machine.kerberos import parse_rules
from moldau.security.machine.oauth import ClaimRules
from moldau.security.machine.scram import ScramMechanism, ScramServer
from moldau.security.nonces import new_nonce

__all__ = ["Authentication"]

logger = logging.getLogger(__name__)

Authenticator = Callable[[ConnectionInfo, FrameReceiver], FrameReceiver]

_JAAS: Final = "sasl.jaas.config"
_CALLBACK: Final = "sasl.server.callback.handler.class"


class Authentication:
    """One per node. Until `follow` is called no SCRAM user is known."""

    def __init__(
        self, config: BrokerConfig, *, clock: Clock, random_bytes: Callable[[int], bytes]
    ) -> None:
        self._config = config
        self._clock = clock
        self._secret = random_bytes(32)
        self._credentials: CredentialSource = NoCredentials(self._secret)
        #: By listener.
        self.logins: dict[str, ListenerLogin] = {}
        self._observer: LoginObserver | None = None

    def observe(self, observer: LoginObserver) -> None:
        """Have `observer` called after each login and each failure."""
        self._observer = observer

    def _on_login(self, connection: ConnectionInfo, mechanism: str, problem: str | None) -> None:
        if self._observer is not None:
            self._observer(connection, mechanism, problem)

    def follow(self, image: Callable[[], MetadataImage]) -> None:
        """Find users in the metadata from now on."""
        token_key = self._config["delegation.token.secret.key"]
        self._credentials = ImageCredentials(
            image,
            self._secret,
            token_key=None if token_key is None else token_key.value.encode(),
            now_ms=self._clock.now_ms,
        )

    def authenticator(self, listener: Listener) -> Authenticator:
        """What stands before the dispatcher on a SASL listener; raises ConfigError."""
        logins, name = self.logins, listener.name
        logins[name] = self._listener_login(listener)
        return lambda connection, receiver: SaslGate(logins[name], connection, receiver)

    def update(self, config: BrokerConfig) -> None:
        """Take over what changed in a running node, for new connections."""
        self._config = config
        for listener in config.listeners:
            if listener.name in self.logins:
                try:
                    self.logins[listener.name] = self._listener_login(listener)
                except ConfigError as error:
                    logger.error("listener %s keeps its logins: %s", listener.name, error)

    def _listener_login(self, listener: Listener) -> ListenerLogin:
        settings = listener_settings(self._config, listener.name)
        names: tuple[str, ...] = tuple(settings["sasl.enabled.mechanisms"])
        return ListenerLogin(
            mechanisms={name: self._mechanism(name, listener, settings) for name in names},
            clock=self._clock,
            on_login=self._on_login,
            principal_of=load_principal_builder(settings) or authorized_user,
            receive_bytes_max=settings["sasl.server.max.receive.size"],
            failure_delay_ms=settings["connection.failed.authentication.delay.ms"],
            reauthentication_ms={
                name: _own(settings, name, "connections.max.reauth.ms") for name in names
            },
        )

    def _mechanism(
        self, name: str, listener: Listener, settings: Mapping[str, Any]
    ) -> MechanismFactory:
        scram = ScramMechanism.named(name)
        if scram is not None:
            return lambda: ScramServer(
                scram,
                nonce=new_nonce(),
                find=lambda user, is_token: self._credentials.find(scram, user, is_token),
            )
        handler = _own(settings, name, _CALLBACK)
        if name == "PLAIN":
            if handler is not None:
                made = make_handler(_CALLBACK, handler, settings, "authenticate")
                return lambda: PlainServer(made.authenticate)
            users = PlainUsers(_jaas_entry(name, listener, settings).options)
            return lambda: PlainServer(users.verify)
        if name == "OAUTHBEARER":
            if handler is not None and not str(handler).startswith(KAFKAS_OWN):
                made = make_handler(_CALLBACK, handler, settings, "validate")
                return lambda: OAuthServer(made.validate)
            validator = self._jwt_validator(name, listener, settings)
            return lambda: OAuthServer(validator.validate)
        if name == "GSSAPI":
            rules_key = "sasl.kerberos.principal.to.local.rules"
            rules = parse_rules(rules_key, _own(settings, name, rules_key))
            key = _jaas_key(name, listener)
            return kerberos_factory(_jaas_entry(name, listener, settings), key, rules)
        raise ConfigError.invalid(
            "sasl.enabled.mechanisms",
            name,
            "use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI",
        )

    def _jwt_validator(
        self, mechanism: str, listener: Listener, settings: Mapping[str, Any]
    ) -> JwtValidator:
        def own(key: str) -> Any:
            return _own(settings, mechanism, key)

        url = own("sasl.oauthbearer.jwks.endpoint.url")
        if url is None:
            key = "sasl.oauthbearer.jwks.endpoint.url"
            raise ConfigError(
                f"{key} is missing: listener {listener.name} has the SASL mechanism OAUTHBEARER, "
                "and tokens without a signature are not accepted. Give the file or URL of the "
                "issuer's JSON Web Key Set, or a class in sasl.server.callback.handler.class",
                key=key,
            )
        return JwtValidator(
            url,
            ClaimRules(
                expected_issuer=own("sasl.oauthbearer.expected.issuer"),
                expected_audience=own("sasl.oauthbearer.expected.audience") or (),
                clock_skew_s=own("sasl.oauthbearer.clock.skew.seconds"),
                scope_claim_name=own("sasl.oauthbearer.scope.claim.name"),
                sub_claim_name=own("sasl.oauthbearer.sub.claim.name"),
            ),
            clock=self._clock,
            refresh_ms=own("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
            retry_backoff_ms=own("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
            retry_backoff_max_ms=own("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
        )


def _own(settings: Mapping[str, Any], mechanism: str, key: str) -> Any:
    """The value of a mechanism's own key, or of the general one."""
    value = settings.get(f"{mechanism.lower()}.{key}")
    return settings[key] if value is None else value


def _jaas_key(mechanism: str, listener: Listener) -> str:
    return f"{listener_prefix(listener.name)}{mechanism.lower()}.{_JAAS}"


def _jaas_entry(mechanism: str, listener: Listener, settings: Mapping[str, Any]) -> JaasEntry:
    key = _jaas_key(mechanism, listener)
    line = _own(settings, mechanism, _JAAS)
    if line is None:
        raise ConfigError(
            f"{key} is missing: listener {listener.name} has the SASL mechanism {mechanism}. "
            f'Write: {key}={example_line(mechanism).rstrip(";")} user_alice="...";',
            key=key,
        )
    text = line.value if isinstance(line, Password) else str(line)
    return find_entry(key, text, mechanism)
