"""SchemaRegistryClient: the registry's interface as methods, with what it answers remembered.

    from moldau.serde import Schema, SchemaRegistryClient

    with SchemaRegistryClient("http://127.0.0.1:8081") as registry:
        schema_id = registry.register("orders-value", Schema('{"type": "string"}'))

Remembered for ever, within bounds, is what never changes: a schema by its id or guid, the id of a
registered schema, a version of a subject. The latest version is asked for again when
`latest.cache.ttl.sec` is over; without that setting, once.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote, urlencode

from moldau.client.errors import ConfigError
from moldau.data.schema_language import ResolvedReference
from moldau.serde.errors import RegistryError
from moldau.serde.settings import parse_settings, tls_context
from moldau.serde.transport import Transport, basic_authorization
from moldau.serde.values import RegisteredSchema, Schema, SchemaReference

__all__ = ["SchemaRegistryClient"]

V = TypeVar("V")
REFERENCE_DEPTH_MAX: Final = 100
#: Contexts that are asked for the subjects of one guid.
CONTEXTS_MAX: Final = 20
DEFAULT_CONTEXT: Final = "."
NOT_FOUND: Final = 404


class SchemaRegistryClient:
    """See the module. Safe to use from several threads."""

    def __init__(self, url: str | None = None, config: Mapping[str, Any] | None = None) -> None:
        """`url` may name several, with commas. `config` has Confluent's keys."""
        given = dict(config or {})
        if url is not None:
            given["schema.registry.url"] = url
        values = parse_settings(given)
        urls = tuple(values["schema.registry.url"])
        if not urls:
            raise ConfigError(
                'Missing required configuration "schema.registry.url": say where the registry is, '
                'for example schema.registry.url="http://127.0.0.1:8081"'
            )
        self._transport = Transport(
            urls,
            authorization=_authorization(values),
            tls=lambda: tls_context(values),
            timeout_s=values["http.read.timeout.ms"] / 1000,
            retries_max=values["max.retries"],
        )
        ttl_s = values["latest.cache.ttl.sec"]
        #: How long the latest version is taken for the latest; None for ever.
        self.latest_ttl_s: float | None = None if ttl_s < 0 else float(ttl_s)
        size = values["max.schemas.per.subject"]
        self._by_id: _Cache[RegisteredSchema] = _Cache(size)
        self._ids: _Cache[RegisteredSchema] = _Cache(size)
        self._versions: _Cache[RegisteredSchema] = _Cache(size)
        self._latest: _Cache[tuple[RegisteredSchema, float]] = _Cache(values["latest.cache.size"])

    # Schemas.

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        """The id of the schema, which is in the registry after this."""
        return self.register_full(subject, schema, normalize=normalize).id

    def register_full(
        self, subject: str, schema: Schema, *, normalize: bool = False
    ) -> RegisteredSchema:
        """As `register`, with all that the registry answers."""

        def ask() -> RegisteredSchema:
            answer = self._post(_versions_of(subject), schema.to_json(), normalize=normalize)
            return RegisteredSchema.from_json(answer, schema=schema)

        return self._ids.get_or(("register", subject, schema, normalize), ask)

    def lookup(
        self, subject: str, schema: Schema, *, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        """The version of the subject that has this schema; RegistryError if there is none."""

        def ask() -> RegisteredSchema:
            path = f"/subjects/{_quoted(subject)}"
            answer = self._post(path, schema.to_json(), normalize=normalize, deleted=deleted)
            return RegisteredSchema.from_json(answer)

        if deleted:
            return ask()
        return self._ids.get_or(("lookup", subject, schema, normalize), ask)

    def schema_by_id(self, schema_id: int, *, subject: str | None = None) -> RegisteredSchema:
        def ask() -> RegisteredSchema:
            answer = self._get(f"/schemas/ids/{schema_id}", subject=subject)
            return RegisteredSchema.from_json({"id": schema_id, **answer})

        return self._by_id.get_or((schema_id, subject), ask)

    def schema_by_guid(self, guid: str) -> RegisteredSchema:
        def ask() -> RegisteredSchema:
            answer = self._get(f"/schemas/guids/{guid}")
            return RegisteredSchema.from_json({"id": -1, **answer, "guid": guid})

        return self._by_id.get_or(guid, ask)

    def subjects_of_id(self, schema_id: int) -> list[str]:
        """Never remembered: a schema may be registered under a further subject."""
        return list(self._get(f"/schemas/ids/{schema_id}/subjects"))

    def subjects_of_guid(self, guid: str) -> list[str]:
        """Never remembered, as by id. In all contexts that have the schema, up to CONTEXTS_MAX."""
        found = self._get(f"/schemas/guids/{guid}/ids")
        subjects: list[str] = []
        for each in found[:CONTEXTS_MAX]:
            context = each.get("context") or DEFAULT_CONTEXT
            within = None if context == DEFAULT_CONTEXT else f":{context}:"
            subjects += self._get(f"/schemas/ids/{each['id']}/subjects", subject=within)
        return subjects

    def latest(self, subject: str) -> RegisteredSchema:
        """The latest version, no older than `latest.cache.ttl.sec`."""
        kept = self._latest.get(subject)
        now_s = time.monotonic()
        if kept is not None and (self.latest_ttl_s is None or now_s < kept[1]):
            return kept[0]
        found = RegisteredSchema.from_json(self._get(f"{_versions_of(subject)}/latest"))
        self._latest.put(subject, (found, now_s + (self.latest_ttl_s or 0.0)))
        return found

    def version(self, subject: str, version: int, *, deleted: bool = True) -> RegisteredSchema:
        """A version of a subject, also a deleted one: others may still refer to it."""

        def ask() -> RegisteredSchema:
            path = f"{_versions_of(subject)}/{version}"
            return RegisteredSchema.from_json(self._get(path, deleted=deleted))

        return self._versions.get_or((subject, version, deleted), ask)

    def references_of(self, schema: Schema) -> tuple[ResolvedReference, ...]:
        """The texts of the schemas that a schema refers to, each before its users."""
        found: dict[str, ResolvedReference] = {}
        self._resolve(schema.references, found, depth=0)
        return tuple(found.values())

    def _resolve(
        self,
        references: tuple[SchemaReference, ...],
        found: dict[str, ResolvedReference],
        *,
        depth: int,
    ) -> None:
        if depth > REFERENCE_DEPTH_MAX:
            raise ConfigError(f"references are nested more than {REFERENCE_DEPTH_MAX} levels deep")
        for each in references:
            if each.name in found:
                continue
            registered = self.version(each.subject, each.version)
            self._resolve(registered.schema.references, found, depth=depth + 1)
            found[each.name] = ResolvedReference(each.name, registered.schema.text)

    # Subjects.

    def subjects(self, *, prefix: str | None = None, deleted: bool = False) -> list[str]:
        return list(self._get("/subjects", subjectPrefix=prefix, deleted=deleted))

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        return list(self._get(_versions_of(subject), deleted=deleted))

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """The versions that are deleted; softly before for good."""
        answer = self._delete(f"/subjects/{_quoted(subject)}", permanent=permanent)
        self._forget()
        return list(answer)

    def delete_version(self, subject: str, version: int, *, permanent: bool = False) -> int:
        answer = self._delete(f"{_versions_of(subject)}/{version}", permanent=permanent)
        self._forget()
        return int(answer)

    # Compatibility and modes.

    def compatibility_problems(
        self, subject: str, schema: Schema, *, version: int | str = "latest"
    ) -> list[str]:
        """Why the schema may not become the next version; empty if it may, and for a subject
        that is not there yet."""
        path = f"/compatibility{_versions_of(subject)}/{version}"
        try:
            answer = self._post(path, schema.to_json(), verbose=True)
        except RegistryError as error:
            if error.status == NOT_FOUND:
                return []
            raise
        if answer["is_compatible"]:
            return []
        return list(answer.get("messages") or ["the schema is not compatible"])

    def config(self, subject: str | None = None) -> dict[str, Any]:
        """Of the subject, or what holds for it; of all without one."""
        return dict(self._get(_scoped("/config", subject), defaultToGlobal=subject is not None))

    def set_config(self, config: Mapping[str, Any], subject: str | None = None) -> dict[str, Any]:
        """`{"compatibility": "FULL"}` and other fields of the registry's body."""
        return dict(self._transport.request("PUT", _scoped("/config", subject), dict(config)))

    def delete_config(self, subject: str | None = None) -> dict[str, Any]:
        return dict(self._delete(_scoped("/config", subject)))

    def mode(self, subject: str | None = None) -> str:
        answer = self._get(_scoped("/mode", subject), defaultToGlobal=subject is not None)
        return str(answer["mode"])

    def set_mode(self, mode: str, subject: str | None = None, *, force: bool = False) -> None:
        path = _with_query(_scoped("/mode", subject), {"force": force})
        self._transport.request("PUT", path, {"mode": mode})

    def associated_subjects(self, topic: str, namespace: str, *, is_key: bool) -> list[str]:
        """Of a topic's keys or values; none where the registry does not know associations."""
        path = f"/associations/resources/{_quoted(namespace)}/{_quoted(topic)}"
        kind = "key" if is_key else "value"
        try:
            found = self._get(path, resourceType="topic", associationType=kind)
        except RegistryError as error:
            if error.status == NOT_FOUND:
                return []
            raise
        return [each["subject"] for each in found]

    def contexts(self) -> list[str]:
        return list(self._get("/contexts"))

    # The end.

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> SchemaRegistryClient:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # Requests.

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Any request to the registry, such as to its DEK registry; nothing is remembered."""
        return self._transport.request(method, path, body)

    def _get(self, path: str, **query: Any) -> Any:
        return self._transport.request("GET", _with_query(path, query))

    def _post(self, path: str, body: Any, **query: Any) -> Any:
        return self._transport.request("POST", _with_query(path, query), body)

    def _delete(self, path: str, **query: Any) -> Any:
        return self._transport.request("DELETE", _with_query(path, query))

    def _forget(self) -> None:
        for cache in (self._ids, self._versions, self._latest):
            cache.clear()


class _Cache(Generic[V]):
    """The most recently used values; bounded."""

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> V | None:
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Hashable, value: V) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._size_max:
                self._values.popitem(last=False)

    def get_or(self, key: Hashable, ask: Callable[[], V]) -> V:
        """Two threads may ask at once: they get the same answer."""
        value = self.get(key)
        if value is None:
            value = ask()
            self.put(key, value)
        return value

    def clear(self) -> None:
        with self._lock:
            self._values.clear()


def _authorization(values: Mapping[str, Any]) -> Callable[[], str | None]:
    token, user_info = values["bearer.auth.token"], values["basic.auth.user.info"]
    if token is not None and user_info is not None:
        raise ConfigError("set basic.auth.user.info or bearer.auth.token, not both")
    if values["basic.auth.credentials.source"].upper() == "SASL_INHERIT":
        raise ConfigError.invalid(
            "basic.auth.credentials.source",
            "SASL_INHERIT",
            "use USER_INFO and basic.auth.user.info",
        )
    if token is not None:
        return lambda: f"Bearer {token.value}"
    if user_info is not None:
        return lambda: basic_authorization(user_info.value)
    return lambda: None


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _versions_of(subject: str) -> str:
    return f"/subjects/{_quoted(subject)}/versions"


def _scoped(path: str, subject: str | None) -> str:
    return path if subject is None else f"{path}/{_quoted(subject)}"


def _with_query(path: str, query: Mapping[str, Any]) -> str:
    """Without what is not set: a registry of an older release may not know it."""
    given = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in query.items()
        if value is not None and value is not False
    }
    return f"{path}?{urlencode(given)}" if given else path
