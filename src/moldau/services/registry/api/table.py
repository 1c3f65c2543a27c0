"""All routes of the registry. Each is there twice: as it is, and below `/contexts/{context}`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from moldau.http.machine.routes import Parameter, Route
from moldau.services.registry.api.associations import AssociationsApi
from moldau.services.registry.api.compatibility import CompatibilityApi
from moldau.services.registry.api.configs import ConfigsApi
from moldau.services.registry.api.keys import KeysApi
from moldau.services.registry.api.schemas import SchemasApi
from moldau.services.registry.api.server import ServerApi
from moldau.services.registry.api.subjects import SubjectsApi
from moldau.services.registry.service import RegistryService

__all__ = ["MEDIA_TYPE", "routes"]

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_PRODUCES: Final = (
    MEDIA_TYPE,
    "application/vnd.schemaregistry+json; qs=0.9",
    "application/json; qs=0.5",
)
_CONSUMES: Final = (
    MEDIA_TYPE,
    "application/vnd.schemaregistry+json",
    "application/json",
    "application/octet-stream",
)

_FLAG: Final = {"type": "boolean"}
_NUMBER: Final = {"type": "integer", "format": "int32"}
_TEXT: Final = {"type": "string"}
_PARAMETERS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "algorithm": (_TEXT, "AES128_GCM, AES256_GCM (the default) or AES256_SIV"),
    "associationType": (_TEXT, "key or value; may be repeated"),
    "cascadeLifecycle": (_FLAG, "also subjects that belong to the topic"),
    "context": (_TEXT, "the context of subjects that name none"),
    "dryRun": (_FLAG, "check, and change nothing"),
    "includeSchemas": (_FLAG, "with the newest schemas of the subjects"),
    "lifecycle": ({"type": "string", "enum": ["STRONG", "WEAK"]}, "only with this lifecycle"),
    "resourceType": (_TEXT, "topic, which is the only one"),
    "aliases": (_FLAG, "also subjects that an alias stands for"),
    "contextPrefix": (_TEXT, "only contexts that begin with this"),
    "defaultToGlobal": (_FLAG, "what applies, where the subject has none of its own"),
    "deleted": (_FLAG, "also what is deleted softly"),
    "deletedAsNegative": (_FLAG, "also deleted versions, as negative numbers"),
    "deletedOnly": (_FLAG, "only what is deleted softly"),
    "fetchMaxId": (_FLAG, "also the highest id of the context"),
    "findTags": (_TEXT, "also entities with this tag, * for any; may be repeated"),
    "force": (_FLAG, "without checks of what is there"),
    "format": (_TEXT, "form of the schema: resolved, serialized, ignore_extensions"),
    "key": (_TEXT, "name of a metadata property; may be repeated"),
    "latestOnly": (_FLAG, "only the newest version of each subject"),
    "limit": (_NUMBER, "how many at most"),
    "normalize": (_FLAG, "normalize the schema first"),
    "offset": (_NUMBER, "how many to leave out"),
    "permanent": (_FLAG, "for good; must be deleted softly before"),
    "recursive": (_FLAG, "also for the subjects of the context"),
    "referenceFormat": (_TEXT, "qualified: with the contexts of references"),
    "rewrap": (_FLAG, "replace the encrypted key material"),
    "ruleType": (_TEXT, "only schemas with a rule of this type"),
    "subject": (_TEXT, "look here first"),
    "subjectPrefix": (_TEXT, "only subjects that begin with this; :*: for all contexts"),
    "testSharing": (_FLAG, "test access to the KMS of a KEK that is shared"),
    "value": (_TEXT, "its value; may be repeated"),
    "verbose": (_FLAG, "with the reasons"),
}

_REFERENCE: Final = {
    "type": "object",
    "properties": {"name": _TEXT, "subject": _TEXT, "version": _NUMBER},
}
SCHEMAS: Final[dict[str, Any]] = {
    "RegisterSchemaRequest": {
        "type": "object",
        "properties": {
            "schema": _TEXT,
            "schemaType": _TEXT,
            "references": {"type": "array", "items": _REFERENCE},
            "metadata": {"type": "object"},
            "ruleSet": {"type": "object"},
            "id": _NUMBER,
            "version": _NUMBER,
        },
    },
    "Schema": {
        "type": "object",
        "properties": {
            "subject": _TEXT,
            "version": _NUMBER,
            "id": _NUMBER,
            "guid": _TEXT,
            "schemaType": _TEXT,
            "references": {"type": "array", "items": _REFERENCE},
            "metadata": {"type": "object"},
            "ruleSet": {"type": "object"},
            "schema": _TEXT,
            "ts": {"type": "integer", "format": "int64"},
            "deleted": _FLAG,
        },
    },
    "Config": {
        "type": "object",
        "properties": {"compatibilityLevel": _TEXT, "normalize": _FLAG, "alias": _TEXT},
    },
    "ConfigUpdateRequest": {
        "type": "object",
        "properties": {"compatibility": _TEXT, "normalize": _FLAG, "alias": _TEXT},
    },
    "Mode": {"type": "object", "properties": {"mode": _TEXT}},
    "CompatibilityCheck": {
        "type": "object",
        "properties": {
            "is_compatible": _FLAG,
            "messages": {"type": "array", "items": _TEXT},
        },
    },
}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_NUMBERS: Final = {"type": "array", "items": _NUMBER}
_OBJECTS: Final = {"type": "array", "items": {"type": "object"}}


def _of(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def routes(service: RegistryService) -> tuple[Route, ...]:
    found = list(_plain_routes(service))
    in_context = [
        replace(each, path="/contexts/{context}" + each.path, hidden=True)
        for each in found
        if each.path not in ("/", "/contexts/{context}")
    ]
    return (*found, *in_context)


def _plain_routes(service: RegistryService) -> Iterator[Route]:
    server = ServerApi(service)
    about = "Server Metadata (v1)"
    yield _get("/", server.root, "Nothing: the registry is up", about, {"type": "object"})
    yield _act("/", server.root, "Nothing: the registry is up", about)
    for name, handler in (
        ("id", server.cluster_id),
        ("version", server.version),
        ("deployment", server.deployment),
    ):
        path = f"/v1/metadata/{name}"
        yield _get(path, handler, f"The server's {name}", about, {"type": "object"})
    yield from _subjects(SubjectsApi(service))
    yield from _schemas(SchemasApi(service))
    if service.config.has_associations:
        yield from _associations(AssociationsApi(service))
    yield from _compatibility(CompatibilityApi(service))
    yield from _settings(ConfigsApi(service))
    yield from _keys(KeysApi(service))


def _subjects(api: SubjectsApi) -> Iterator[Route]:
    tag = "Subjects (v1)"
    subject = "/subjects/{subject}"
    version = subject + "/versions/{version}"
    schema = _of("Schema")
    yield _get(
        "/subjects", api.list_subjects, "List subjects", tag, _TEXTS,
        "subjectPrefix deleted deletedOnly offset limit",
    )  # fmt: skip
    yield _post(
        subject, api.look_up, "Look up a schema under a subject", tag, schema,
        "normalize format deleted",
    )  # fmt: skip
    yield _delete(subject, api.delete_subject, "Delete a subject", tag, _NUMBERS, "permanent")
    yield _get(
        subject + "/metadata", api.get_with_metadata, "The newest version with properties", tag,
        schema, "key value format deleted",
    )  # fmt: skip
    yield _get(
        subject + "/versions", api.list_versions, "List versions", tag, _NUMBERS,
        "deleted deletedOnly deletedAsNegative offset limit",
    )  # fmt: skip
    yield _post(
        subject + "/versions", api.register, "Register a schema", tag, schema,
        "normalize format force",
    )  # fmt: skip
    yield _get(
        version,
        api.get_version,
        "A version",
        tag,
        schema,
        "format referenceFormat deleted findTags",
    )
    yield _delete(version, api.delete_version, "Delete a version", tag, _NUMBER, "permanent")
    yield _post(
        version + "/tags", api.tag, "Register a version with other tags", tag, schema,
        body={"type": "object"},
    )  # fmt: skip
    yield _get(
        version + "/schema", api.get_text, "The schema of a version alone", tag, _TEXT,
        "format deleted",
    )  # fmt: skip
    yield _get(
        version + "/referencedby", api.get_referring, "Ids of schemas that refer to a version",
        tag, _NUMBERS, "deleted offset limit",
    )  # fmt: skip


def _schemas(api: SchemasApi) -> Iterator[Route]:
    tag = "Schemas (v1)"
    id = "/schemas/ids/{id:int}"
    schema = _of("Schema")
    yield _get(
        "/schemas", api.list_schemas, "List schemas", tag, {"type": "array", "items": schema},
        "subjectPrefix aliases deleted latestOnly ruleType resourceType associationType lifecycle "
        "offset limit",
    )  # fmt: skip
    yield _get("/schemas/types", api.list_types, "Types of schemas", tag, _TEXTS)
    yield _get(
        id, api.get_by_id, "A schema by its id", tag, schema,
        "subject format referenceFormat fetchMaxId findTags",
    )  # fmt: skip
    yield _get(id + "/schema", api.get_text_by_id, "The schema alone", tag, _TEXT, "subject format")
    yield _get(
        id + "/subjects", api.list_subjects, "Subjects with an id", tag, _TEXTS,
        "subject deleted offset limit",
    )  # fmt: skip
    yield _get(
        id + "/versions", api.list_versions, "Subjects and versions with an id", tag, _OBJECTS,
        "subject deleted offset limit",
    )  # fmt: skip
    guid = "/schemas/guids/{guid}"
    yield _get(guid, api.get_by_guid, "A schema by its guid", tag, schema, "format")
    yield _get(guid + "/ids", api.list_ids_of_guid, "Ids with a guid", tag, _OBJECTS)


def _associations(api: AssociationsApi) -> Iterator[Route]:
    tag = "Associations (v1)"
    found, thing = _OBJECTS, {"type": "object"}
    wanted = "resourceType associationType lifecycle offset limit"
    yield _get(
        "/associations/subjects/{subject}", api.by_subject, "Associations of a subject", tag, found,
        wanted,
    )  # fmt: skip
    resource = "/associations/resources/{resource}"
    yield _get(
        resource + "/{resourceName}", api.by_name, "Associations of a namespace and name", tag,
        found, wanted,
    )  # fmt: skip
    yield _get(resource, api.by_id, "Associations of a resource by its id", tag, found, wanted)
    yield _post(
        "/associations", api.create, "Create associations", tag, thing, "context dryRun", body=thing
    )
    yield _put(
        resource, api.create_or_update, "Create or update associations", tag, thing,
        "context dryRun", body=thing,
    )  # fmt: skip
    yield _gone(
        _delete(
            resource, api.delete, "Delete associations", tag, None,
            "resourceType associationType cascadeLifecycle dryRun",
        )
    )  # fmt: skip
    several = {207: thing}
    # The first was the name of the second.
    for path in ("/associations:batch", "/associations:batchMutate"):
        route = _post(
            path, api.change_several, "Create, update and delete associations", tag, thing,
            "context dryRun", body=thing,
        )  # fmt: skip
        yield replace(route, responses=several)
    route = _post(
        "/associations:batchGet", api.get_several, "Associations of several resources", tag, thing,
        "includeSchemas", body=thing,
    )  # fmt: skip
    yield replace(route, responses=several)


def _compatibility(api: CompatibilityApi) -> Iterator[Route]:
    tag = "Compatibility (v1)"
    versions = "/compatibility/subjects/{subject}/versions"
    checked = _of("CompatibilityCheck")
    yield _post(
        versions + "/{version}", api.check_version, "Test against a version", tag, checked,
        "normalize verbose",
    )  # fmt: skip
    yield _post(
        versions, api.check_subject, "Test against a subject", tag, checked, "normalize verbose"
    )


def _settings(api: ConfigsApi) -> Iterator[Route]:
    tag = "Config (v1)"
    for path in ("/config", "/config/{subject}"):
        yield _get(path, api.get_config, "The configuration", tag, _of("Config"), "defaultToGlobal")
        yield _put(
            path, api.set_config, "Change it", tag, _of("ConfigUpdateRequest"),
            body=_of("ConfigUpdateRequest"),
        )  # fmt: skip
        yield _delete(path, api.delete_config, "Remove it", tag, _of("Config"))
    tag = "Modes (v1)"
    mode = _of("Mode")
    for path in ("/mode", "/mode/{subject}"):
        yield _get(path, api.get_mode, "The mode", tag, mode, "defaultToGlobal")
        yield _put(path, api.set_mode, "Change it", tag, mode, "force", body=mode)
        yield _delete(path, api.delete_mode, "Remove it", tag, mode, "recursive")
    tag = "Contexts (v1)"
    yield _get(
        "/contexts", api.list_contexts, "List contexts", tag, _TEXTS, "contextPrefix offset limit"
    )
    path = "/contexts/{context}"
    yield _gone(_delete(path, api.delete_context, "Delete an empty context", tag, None))


def _keys(api: KeysApi) -> Iterator[Route]:
    tag = "Key Encryption Keys (v1)"
    keks = "/dek-registry/v1/keks"
    kek, body = {"type": "object"}, {"type": "object"}
    yield _get(keks, api.list_keks, "List KEKs", tag, _TEXTS, "subjectPrefix deleted offset limit")
    yield _post(keks, api.create_kek, "Create a KEK", tag, kek, "testSharing", body=body)
    keks += "/{name}"
    yield _get(keks, api.get_kek, "A KEK", tag, kek, "deleted")
    yield _put(keks, api.update_kek, "Change a KEK", tag, kek, "testSharing", body=body)
    yield _gone(_delete(keks, api.delete_kek, "Delete a KEK", tag, None, "permanent"))
    yield _gone(_act(keks + "/undelete", api.undelete_kek, "Undelete a KEK", tag))
    yield _act(keks + "/test", api.test_kek, "Test access to the KMS", tag)
    tag = "Data Encryption Keys (v1)"
    deks = keks + "/deks"
    yield _get(deks, api.list_subjects, "List subjects", tag, _TEXTS, "deleted offset limit")
    yield _post(deks, api.create_dek, "Create a DEK", tag, kek, "rewrap", body=body)
    deks += "/{subject}"
    yield _post(deks, api.create_dek, "Create a DEK", tag, kek, "rewrap", body=body)
    versions = deks + "/versions"
    yield _get(
        versions, api.list_versions, "List versions", tag, _NUMBERS,
        "algorithm deleted offset limit",
    )  # fmt: skip
    for path in (deks, versions + "/{version}"):
        # The KMS of a KEK that is shared may be slow.
        yield _waiting(_get(path, api.get_dek, "A DEK", tag, kek, "algorithm deleted"))
        yield _gone(_delete(path, api.delete_dek, "Delete DEKs", tag, None, "algorithm permanent"))
        yield _gone(_act(path + "/undelete", api.undelete_dek, "Undelete DEKs", tag, "algorithm"))


Handler = Callable[..., Any]


def _get(
    path: str,
    handler: Handler,
    summary: str,
    tag: str,
    answer: dict[str, Any] | None,
    parameters: str = "",
) -> Route:
    return Route(
        method="GET",
        path=path,
        handler=handler,
        summary=summary,
        tag=tag,
        produces=_PRODUCES,
        parameters=tuple(_parameters(parameters.split())),
        responses={200: answer},
        # Answered from memory: there is nothing to wait for.
        timeout_ms=0,
    )


def _delete(
    path: str,
    handler: Handler,
    summary: str,
    tag: str,
    answer: dict[str, Any] | None,
    parameters: str = "",
) -> Route:
    return replace(_waiting(_get(path, handler, summary, tag, answer, parameters)), method="DELETE")


def _post(
    path: str,
    handler: Handler,
    summary: str,
    tag: str,
    answer: dict[str, Any] | None,
    parameters: str = "",
    *,
    body: dict[str, Any] | None = None,
) -> Route:
    return replace(
        _waiting(_get(path, handler, summary, tag, answer, parameters)),
        method="POST",
        consumes=_CONSUMES,
        body=_of("RegisterSchemaRequest") if body is None else body,
    )


def _act(path: str, handler: Handler, summary: str, tag: str, parameters: str = "") -> Route:
    """A POST whose body, if any, means nothing."""
    return replace(_waiting(_get(path, handler, summary, tag, None, parameters)), method="POST")


def _waiting(route: Route) -> Route:
    """Its body or the topic may keep it waiting: the service's limit holds."""
    return replace(route, timeout_ms=None)


def _gone(route: Route) -> Route:
    """It answers with nothing."""
    return replace(route, responses={204: None})


def _put(
    path: str,
    handler: Handler,
    summary: str,
    tag: str,
    answer: dict[str, Any] | None,
    parameters: str = "",
    *,
    body: dict[str, Any],
) -> Route:
    return replace(_post(path, handler, summary, tag, answer, parameters), method="PUT", body=body)


def _parameters(names: Iterable[str]) -> Iterator[Parameter]:
    for name in names:
        schema, description = _PARAMETERS[name]
        yield Parameter(name=name, description=description, schema=schema)
