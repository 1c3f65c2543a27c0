"""Settings of topics, brokers and groups: read with their explanation, and changed."""

from __future__ import annotations

from typing import Any, Final

from moldau.client.admin import AlterConfigOp, ConfigEntry, ConfigResource, ConfigResourceType
from moldau.services.console.api.bodies import Body
from moldau.services.console.backend import Call
from moldau.services.console.machine.errors import bad_request
from moldau.services.console.machine.explanations import explanation

__all__ = ["alter_settings", "read_settings", "shown_entry"]

_KINDS: Final = {
    ConfigResourceType.TOPIC: "topic",
    ConfigResourceType.BROKER: "broker",
    ConfigResourceType.GROUP: "group",
}


async def read_settings(call: Call, resource: ConfigResource) -> dict[str, Any]:
    """Every setting with value, source and what it means."""
    found = await call.admin.describe_configs(
        [resource], include_synonyms=True, include_documentation=True
    )
    kind = _KINDS.get(resource.type, "")
    entries = sorted(found[resource].values(), key=lambda each: each.name)
    return {"data": [shown_entry(each, kind) for each in entries]}


def shown_entry(entry: ConfigEntry, kind: str) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name,
        "type": entry.type.name,
        "default": entry.is_default,
        "sensitive": entry.is_sensitive,
        "read_only": entry.is_read_only,
        "documentation": explanation(kind, entry.name, entry.documentation),
        "synonyms": [
            {"name": each.name, "value": each.value, "source": each.source.name}
            for each in entry.synonyms
        ],
    }


async def alter_settings(call: Call, resource: ConfigResource, body: Body) -> dict[str, Any]:
    """`set` is an object of new values, `delete` a list of keys that go back to the default."""
    operations = []
    for name, value in body.mapping("set").items():
        if value is None or isinstance(value, dict | list):
            raise bad_request(f"The value of {name} must be a text, a number or a boolean.")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        operations.append(AlterConfigOp.set(name, text))
    operations += [AlterConfigOp.delete(str(name)) for name in body.items("delete", [])]
    if not operations:
        raise bad_request("Nothing to change: fill in set or delete.")
    await call.admin.incremental_alter_configs(
        {resource: operations}, validate_only=body.flag("validate_only")
    )
    return {"changed": len(operations), "validate_only": body.flag("validate_only")}
