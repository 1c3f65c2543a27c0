"""How a client logs in, by its settings: `sasl.mechanism` and `sasl.jaas.config`.

Decided here: which `Login` a set of settings means, and what is missing in it. Clients and brokers
that call others read the same keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from moldau.clock import LoopClock
from moldau.config.errors import ConfigError
from moldau.config.values import Password
from moldau.security.assertions import Assertion
from moldau.security.classes import KAFKAS_OWN, make_handler
from moldau.security.gssapi import GssapiLogin
from moldau.security.http import as_path
from moldau.security.machine.jaas import JaasEntry, example_line, find_entry
from moldau.security.machine.oauth import check_extensions
from moldau.security.machine.scram import TOKEN_AUTH, ScramMechanism
from moldau.security.nonces import new_nonce
from moldau.security.oauth_login import (
    Endpoint,
    OAuthLogin,
    RefreshRules,
    endpoint_source,
    timeout_s,
)
from moldau.security.sasl_client import Login, PlainLogin, ScramLogin

__all__ = ["SaslValues", "login_of"]


_JWT_BEARER: Final = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"
#: Either of them means that the client shows an assertion instead of a secret.
_ASSERTION_KEYS: Final = (
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.claim.iss",
)


class SaslValues(Protocol):
    """Parsed settings by key."""

    def __getitem__(self, key: str, /) -> Any: ...
    def get(self, key: str, /) -> Any: ...


def login_of(
    values: SaslValues, *, mechanism: str | None = None, jaas_key: str = "sasl.jaas.config"
) -> Login:
    """What the settings say; raises ConfigError that shows the line to write.

    Brokers name the mechanism, and the key where their JAAS line is.
    """
    name = (mechanism or str(values["sasl.mechanism"])).upper()
    make = _MAKERS.get(name)
    if make is None:
        raise ConfigError.invalid("sasl.mechanism", name, f"must be one of {', '.join(_MAKERS)}")
    line = values[jaas_key]
    if line is None:
        raise ConfigError(
            f"{jaas_key} is missing: SASL mechanism {name} needs credentials. "
            f"Write: {jaas_key}={example_line(name)}",
            key=jaas_key,
        )
    text = line.value if isinstance(line, Password) else str(line)
    return make(name, find_entry(jaas_key, text, name), values, jaas_key)


def _option(entry: JaasEntry, option: str, jaas_key: str, mechanism: str) -> str:
    value = entry.options.get(option)
    if not value:
        raise ConfigError(
            f"{jaas_key} has no {option}: {mechanism} needs it. Write: {example_line(mechanism)}",
            key=jaas_key,
        )
    return value


def _plain(mechanism: str, entry: JaasEntry, values: SaslValues, jaas_key: str) -> Login:
    return PlainLogin(
        _option(entry, "username", jaas_key, mechanism),
        _option(entry, "password", jaas_key, mechanism),
    )


def _scram(mechanism: str, entry: JaasEntry, values: SaslValues, jaas_key: str) -> Login:
    return ScramLogin(
        ScramMechanism[mechanism.replace("-", "_")],
        _option(entry, "username", jaas_key, mechanism),
        _option(entry, "password", jaas_key, mechanism),
        new_nonce=new_nonce,
        token_auth=entry.options.get(TOKEN_AUTH, "").lower() == "true",
    )


def _oauth(mechanism: str, entry: JaasEntry, values: SaslValues, jaas_key: str) -> Login:
    clock = LoopClock()
    prefix = "extension_"
    extensions = {
        name.removeprefix(prefix): value
        for name, value in entry.options.items()
        if name.startswith(prefix)
    }
    check_extensions(jaas_key, extensions)
    retriever = values["sasl.oauthbearer.jwt.retriever.class"]
    handler = values["sasl.login.callback.handler.class"]
    if handler is not None and not str(handler).startswith(KAFKAS_OWN):
        key = "sasl.login.callback.handler.class"
        source = make_handler(key, handler, dict(entry.options), "token").token
    elif retriever is not None and not str(retriever).startswith(KAFKAS_OWN):
        key = "sasl.oauthbearer.jwt.retriever.class"
        source = make_handler(key, retriever, dict(entry.options), "retrieve").retrieve
    else:
        source = endpoint_source(_endpoint(entry, values, jaas_key), clock)
    return OAuthLogin(
        source,
        extensions=extensions,
        rules=RefreshRules(
            window_factor=values["sasl.login.refresh.window.factor"],
            window_jitter=values["sasl.login.refresh.window.jitter"],
            min_period_s=values["sasl.login.refresh.min.period.seconds"],
            buffer_s=values["sasl.login.refresh.buffer.seconds"],
        ),
        clock=clock,
    )


def _endpoint(entry: JaasEntry, values: SaslValues, jaas_key: str) -> Endpoint:
    """The keys of KIP-1139 come before the options of the JAAS line."""
    key = "sasl.oauthbearer.token.endpoint.url"
    url = values[key]
    if url is None:
        raise ConfigError(
            f"{key} is missing: OAUTHBEARER fetches its tokens there; file:/path/to/token reads "
            "them from a file",
            key=key,
        )
    secret = values["sasl.oauthbearer.client.credentials.client.secret"]
    client_id = values["sasl.oauthbearer.client.credentials.client.id"]
    client_id = client_id or entry.options.get("clientId") or ""
    is_grant = str(values["sasl.oauthbearer.jwt.retriever.class"]) == _JWT_BEARER
    has_assertion = is_grant or any(values[key] for key in _ASSERTION_KEYS)
    if not client_id and not has_assertion and as_path(url) is None:
        raise ConfigError(
            "sasl.oauthbearer.client.credentials.client.id is missing: the token endpoint wants "
            f'to know the client. Set it and the client.secret, or clientId="..." in {jaas_key}',
            key="sasl.oauthbearer.client.credentials.client.id",
        )
    return Endpoint(
        url=url,
        client_id=client_id,
        client_secret=secret.value if secret else entry.options.get("clientSecret", ""),
        scope=values["sasl.oauthbearer.scope"] or entry.options.get("scope"),
        urlencode_header=bool(values.get("sasl.oauthbearer.header.urlencode")),
        timeout_s=timeout_s(
            values["sasl.login.connect.timeout.ms"], values["sasl.login.read.timeout.ms"]
        ),
        retry_backoff_ms=values["sasl.login.retry.backoff.ms"],
        retry_backoff_max_ms=values["sasl.login.retry.backoff.max.ms"],
        assertion=Assertion.of(values) if has_assertion else None,
        is_grant=is_grant,
    )


def _gssapi(mechanism: str, entry: JaasEntry, values: SaslValues, jaas_key: str) -> Login:
    key = "sasl.kerberos.service.name"
    service = values[key] or entry.options.get("serviceName")
    if not service:
        raise ConfigError(
            f"{key} is missing: the name that brokers have in Kerberos, kafka as a rule", key=key
        )
    return GssapiLogin(entry, service, jaas_key)


_MAKERS: Final[dict[str, Callable[[str, JaasEntry, SaslValues, str], Login]]] = {
    "PLAIN": _plain,
    "SCRAM-SHA-256": _scram,
    "SCRAM-SHA-512": _scram,
    "OAUTHBEARER": _oauth,
    "GSSAPI": _gssapi,
}
