"""Configurations of topics, brokers, their loggers, groups and client metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from moldau.cli.admin.config_entities import (
    BROKER_LOGGERS,
    BROKERS,
    CLIENT_METRICS,
    GROUPS,
    TOPICS,
    Entities,
)
from moldau.cli.support.machine.errors import Refused
from moldau.cli.support.tables import Table, on_terminal, print_json
from moldau.client.admin import (
    Admin,
    AlterConfigOp,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
)
from moldau.client.errors import ClusterAuthorizationFailedError, UnsupportedVersionError

__all__ = ["alter", "describe"]

_TYPES = {
    TOPICS: ConfigResourceType.TOPIC,
    BROKERS: ConfigResourceType.BROKER,
    BROKER_LOGGERS: ConfigResourceType.BROKER_LOGGER,
    CLIENT_METRICS: ConfigResourceType.CLIENT_METRICS,
    GROUPS: ConfigResourceType.GROUP,
}
# Where a value comes from that was set for the entity itself; loggers show all.
_DYNAMIC = {
    TOPICS: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    BROKERS: ConfigSource.DYNAMIC_BROKER_CONFIG,
    CLIENT_METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
    GROUPS: ConfigSource.DYNAMIC_GROUP_CONFIG,
}
_SECONDS_MAX = 30.0


def alter(
    admin: Admin, entities: Entities, added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    kind, name = entities.types[0], entities.names[0]
    if kind == BROKER_LOGGERS:
        loggers = {entry.name for entry in _entries(admin, kind, [name], show_all=True)[name]}
        unknown = [key for key in (*deleted, *added) if key not in loggers]
        if unknown:
            raise Refused(f"Invalid broker logger(s): {','.join(unknown)}")
    operations = [
        *(AlterConfigOp.delete(key) for key in deleted),
        *(AlterConfigOp.set(key, value) for key, value in added.items()),
    ]
    resource = ConfigResource(_TYPES[kind], name)
    admin.incremental_alter_configs({resource: operations}, timeout=_SECONDS_MAX)


def describe(admin: Admin, entities: Entities, *, show_all: bool, as_json: bool) -> None:
    kind = entities.types[0]
    if entities.names:
        name = entities.names[0]
        if not show_all and not _exists(admin, kind, name):
            print(f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.")
            return
        names = [name]
    else:
        names = _all_names(admin, kind)
    found = _entries(admin, kind, names, show_all=show_all)
    if as_json:
        print_json(
            [
                {"entityType": kind, "entityName": name, "configs": _to_json(found[name])}
                for name in names
            ]
        )
        return
    for name in names:
        _show(_title(kind, name, show_all), found[name])


def _title(kind: str, name: str, show_all: bool) -> str:
    if not name:
        return f"Default configs for {kind} in the cluster are:"
    return f"{'All' if show_all else 'Dynamic'} configs for {kind[:-1]} {name} are:"


def _exists(admin: Admin, kind: str, name: str) -> bool:
    if kind == TOPICS:
        return name in admin.list_topics(list_internal=True)
    if kind in (BROKERS, BROKER_LOGGERS):
        return not name or any(str(node.id) == name for node in admin.describe_cluster().nodes)
    if kind == CLIENT_METRICS:
        return name in admin.list_client_metrics_resources()
    configured = _configured_groups(admin)
    # A broker that cannot be queried might have the setting.
    return configured is None or name in configured or name in _groups(admin)


def _all_names(admin: Admin, kind: str) -> list[str]:
    if kind == TOPICS:
        return list(admin.list_topics(list_internal=True))
    if kind in (BROKERS, BROKER_LOGGERS):
        return [*(str(node.id) for node in admin.describe_cluster().nodes), ""]
    if kind == CLIENT_METRICS:
        return admin.list_client_metrics_resources()
    return sorted(_groups(admin) | (_configured_groups(admin) or set()))


def _groups(admin: Admin) -> set[str]:
    return {listing.group_id for listing in admin.list_groups()}


def _configured_groups(admin: Admin) -> set[str] | None:
    try:
        return {each.name for each in admin.list_config_resources([ConfigResourceType.GROUP])}
    except (UnsupportedVersionError, ClusterAuthorizationFailedError):
        return None


def _entries(
    admin: Admin, kind: str, names: Sequence[str], *, show_all: bool
) -> dict[str, list[ConfigEntry]]:
    """By name, what was set for each entity itself or, with `show_all`, all that applies to it."""
    if not names:
        return {}
    resources = [ConfigResource(_TYPES[kind], name) for name in names]
    found = admin.describe_configs(resources, include_synonyms=True, timeout=_SECONDS_MAX)
    entries = {}
    for resource in resources:
        source = _DYNAMIC.get(kind)
        if kind == BROKERS and resource.is_default:
            source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        values = found[resource]
        entries[resource.name] = [
            values[key]
            for key in sorted(values)
            if show_all or source is None or values[key].source is source
        ]
    return entries


def _text(value: str | None) -> str:
    return "null" if value is None else value


def _show(title: str, entries: Iterable[ConfigEntry]) -> None:
    if on_terminal():
        table = Table("Name", "Value", "Source", "Sensitive", title=title)
        for entry in entries:
            sensitive = "yes" if entry.is_sensitive else ""
            table.add(entry.name, _text(entry.value), entry.source.name, sensitive)
        table.show()
        return
    print(title)
    for entry in entries:
        synonyms = ", ".join(
            f"{each.source.name}:{each.name}={_text(each.value)}" for each in entry.synonyms
        )
        sensitive = "true" if entry.is_sensitive else "false"
        print(f"  {entry.name}={_text(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}")


def _to_json(entries: Iterable[ConfigEntry]) -> dict[str, object]:
    return {
        entry.name: {
            "value": entry.value,
            "source": entry.source.name,
            "sensitive": entry.is_sensitive,
            "readOnly": entry.is_read_only,
            "synonyms": [
                {"source": each.source.name, "name": each.name, "value": each.value}
                for each in entry.synonyms
            ],
        }
        for entry in entries
    }
