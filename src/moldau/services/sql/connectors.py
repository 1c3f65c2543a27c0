"""Statements about connectors: requests to the REST interface of a Connect cluster."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from moldau.services.sql.machine.entities import Entity
from moldau.sql.engine.listing import Lister
from moldau.sql.errors import KsqlException
from moldau.sql.sources.metastore import MetaStore
from moldau.sql.syntax.statements import CreateConnector, Describe, DropConnector, Show

__all__ = ["Connectors"]

_TIMEOUT_S: Final = 30.0
_CONFLICT: Final = 409


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Connectors:
    """`url` is that of ksql.connect.url; empty where there is no Connect."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def create(self, statement: CreateConnector, text: str) -> Entity:
        name = statement.name
        if statement.if_not_exists and name in self._ask("GET", "/connectors", "create"):
            return _warning(text, f"Connector {name} already exists")
        config = {key: _value(each) for key, each in statement.properties.items()}
        # ksqlDB's connectors write keys that its sources can read, unless they say otherwise.
        config.setdefault("key.converter", "org.apache.kafka.connect.storage.StringConverter")
        config["name"] = name
        found = self._ask("POST", "/connectors", "create", {"name": name, "config": config})
        return {"@type": "connector_info", "statementText": text, "info": found, "warnings": []}

    def drop(self, statement: DropConnector, text: str) -> Entity:
        name = statement.name
        try:
            self._request("DELETE", f"/connectors/{quote(name, safe='')}")
        except _Refused as error:
            if error.status == 404 and statement.if_exists:
                return _warning(text, f"Connector '{name}' does not exist.")
            raise KsqlException(f"Failed to drop connector: {error}") from error
        return {
            "@type": "drop_connector",
            "statementText": text,
            "connectorName": name,
            "warnings": [],
        }

    def listed(self, statement: Show, text: str) -> Entity:
        if statement.what == "CONNECTOR PLUGINS":
            plugins = self._ask("GET", "/connector-plugins", "list connector plugins")
            shown = [
                {"className": each["class"], "type": each["type"], "version": each.get("version")}
                for each in plugins
            ]
            return {
                "@type": "connector_plugins_list",
                "statementText": text,
                "connectorsPlugins": shown,
                "warnings": [],
            }
        found = self._ask("GET", "/connectors?expand=status&expand=info", "list connectors")
        scope = (statement.scope or "").lower()
        shown = [
            {
                "name": name,
                "type": each["info"]["type"],
                "className": each["info"]["config"].get("connector.class"),
                "state": _state(each["status"]),
            }
            for name, each in sorted(found.items())
            if not scope or each["info"]["type"] == scope
        ]
        return {
            "@type": "connector_list",
            "statementText": text,
            "connectors": shown,
            "warnings": [],
        }

    def described(self, statement: Describe, text: str, store: MetaStore, lister: Lister) -> Entity:
        path = f"/connectors/{quote(statement.name, safe='')}"
        what = "query connector status"
        status = self._ask("GET", f"{path}/status", what)
        info = self._ask("GET", path, what)
        topics = self._ask("GET", f"{path}/topics", what).get(statement.name, {}).get("topics", [])
        sources = [
            lister.source(each, extended=False)
            for each in store.sources.values()
            if each.topic in topics
        ]
        return {
            "@type": "connector_description",
            "statementText": text,
            "connectorClass": info["config"].get("connector.class"),
            "status": status,
            "sources": sources,
            "topics": topics,
            "warnings": [],
        }

    def _ask(self, method: str, path: str, what: str, body: Any = None) -> Any:
        try:
            return self._request(method, path, body)
        except _Refused as error:
            verb = f"{what} connector" if " " not in what else what
            raise KsqlException(f"Failed to {verb}: {error}") from error

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        if not self._url:
            raise KsqlException(
                "Connectors need a Connect cluster: set ksql.connect.url to its address, for "
                "example ksql.connect.url=http://127.0.0.1:8083"
            )
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._url + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise _Refused(error.code, _message(error)) from None
        except OSError as error:
            raise KsqlException(f"Connect at {self._url} cannot be reached: {error}") from None
        return json.loads(text) if text.strip() else {}


def _message(error: urllib.error.HTTPError) -> str:
    try:
        found = json.loads(error.read())
        return str(found["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {error.code}"


def _warning(text: str, message: str) -> Entity:
    return {"@type": "warning_entity", "statementText": text, "message": message, "warnings": []}


def _value(literal: Any) -> str:
    """As Connect takes it: a text."""
    value = getattr(literal, "value", literal)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _state(status: Mapping[str, Any]) -> str:
    """RUNNING (2/2 tasks RUNNING), or WARNING where tasks fail."""
    tasks = status.get("tasks", [])
    running = sum(each["state"] == "RUNNING" for each in tasks)
    state = status["connector"]["state"]
    if state == "RUNNING" and running < len(tasks):
        state = "FAILED" if running == 0 else "WARNING"
    return f"{state} ({running}/{len(tasks)} tasks RUNNING)"
