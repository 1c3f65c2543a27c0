"""Logins of the HTTP sink: OAuth 2 by client credentials, with a token that is kept until a server
refuses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from moldau.connect.api import CheckedBy, ConfigDef, ConfigError, ConnectError, Kind, OneOf
from moldau.connect.connectors.support.web import WebClient, basic, plain
from moldau.data import json_text


def check_url(key: str, value: Any) -> None:
    parts = urlsplit(str(value))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must begin with http://HOST or https://HOST")


def _check_optional_url(key: str, value: Any) -> None:
    if value:
        check_url(key, value)


def define_oauth2(config: ConfigDef) -> ConfigDef:
    return (
        config.define("oauth2.token.url", Kind.STRING, "", group="OAuth 2",
                      validator=CheckedBy(_check_optional_url, "a URL"), doc="Where tokens are had")
        .define("oauth2.client.id", Kind.STRING, "", group="OAuth 2", doc="Client")
        .define("oauth2.client.secret", Kind.PASSWORD, None, group="OAuth 2", doc="Its secret")
        .define("oauth2.client.scope", Kind.STRING, "any", group="OAuth 2", doc="Scope")
        .define("oauth2.client.auth.mode", Kind.STRING, "header", group="OAuth 2",
                validator=OneOf(("header", "url"), ignore_case=True),
                doc="Whether client and secret are in the header or in the body")
        .define("oauth2.client.headers", Kind.STRING, "", group="OAuth 2",
                doc="Headers of requests for tokens, separated by header.separator")
        .define("oauth2.token.property", Kind.STRING, "access_token", group="OAuth 2",
                doc="Which part of the answer is the token")
    )  # fmt: skip


def headers_of(text: str, separator: str) -> dict[str, str]:
    found = {}
    for each in filter(None, text.split(separator)):
        name, _, value = each.partition(":")
        found[name.strip()] = value.strip()
    return found


class Tokens:
    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._token: str | None = None
        url = config["oauth2.token.url"]
        if not url:
            raise ConfigError.invalid("oauth2.token.url", url, "must be set with OAUTH2")
        parts = urlsplit(url)
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._client = WebClient(
            f"{parts.scheme}://{parts.netloc}",
            key="oauth2.token.url",
            timeout_s=config["read.timeout.ms"] / 1000,
            trusted=config["ssl.truststore.location"],
            verify_hostname=config["ssl.verify.hostname"],
        )

    def header(self) -> str:
        if self._token is None:
            self._token = self._ask()
        return f"Bearer {self._token}"

    def refused(self) -> None:
        """A server did not take the token: the next one is new."""
        self._token = None

    def _ask(self) -> str:
        config = self._config
        client, secret = config["oauth2.client.id"], plain(config["oauth2.client.secret"]) or ""
        form = {"grant_type": "client_credentials"}
        if config["oauth2.client.scope"]:
            form["scope"] = config["oauth2.client.scope"]
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            **headers_of(config["oauth2.client.headers"], config["header.separator"]),
        }
        if config["oauth2.client.auth.mode"].lower() == "url":
            form |= {"client_id": client, "client_secret": secret}
        else:
            headers["Authorization"] = basic(client, secret)
        answer = self._client.request("POST", self._path, urlencode(form).encode(), headers)
        shown = f"{self._client.shown}{urlsplit(self._path).path}"
        if answer.status >= 300:
            raise ConnectError(f"{shown} gave no token, but {answer.status}: {answer.text[:500]}")
        name = config["oauth2.token.property"]
        try:
            return str(json_text.parse(answer.body)[name])
        except (ValueError, KeyError, TypeError):
            raise ConnectError(f"the answer of {shown} has no {name}") from None

    def close(self) -> None:
        self._client.close()
