"""Topics of the target as they should be: which to create, and which settings and ACLs to copy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from moldau.client.admin.acl_values import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from moldau.client.admin.config_values import AlterConfigOp, ConfigEntry, ConfigSource
from moldau.mirror.machine.selection import Selection

__all__ = ["TopicPlan", "config_changes", "new_topic_config", "plan_topics", "target_acls"]


class PropertyFilter(Protocol):
    def should_replicate_config_property(self, name: str) -> bool: ...

    def should_replicate_source_default(self, name: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class TopicPlan:
    create: dict[str, str] = field(default_factory=dict)
    """Remote topics by source topic."""
    grow: dict[str, int] = field(default_factory=dict)
    """New partition counts by remote topic."""


def plan_topics(
    source: Mapping[str, int], target: Mapping[str, int], selection: Selection
) -> TopicPlan:
    """From the partition counts of the topics that are copied, and of the target's."""
    plan = TopicPlan()
    for topic, count in source.items():
        remote = selection.remote(topic)
        there = target.get(remote)
        if there is None:
            plan.create[topic] = remote
        elif there < count:
            plan.grow[remote] = count
    return plan


def _is_copied(entry: ConfigEntry, rules: PropertyFilter) -> bool:
    return (
        not entry.is_read_only
        and not entry.is_sensitive
        and entry.source is not ConfigSource.STATIC_BROKER_CONFIG
        and rules.should_replicate_config_property(entry.name)
    )


def new_topic_config(
    entries: Iterable[ConfigEntry], rules: PropertyFilter
) -> dict[str, str | None]:
    """The settings of a topic that is created."""
    return {
        each.name: each.value
        for each in entries
        if _is_copied(each, rules)
        and (not each.is_default or rules.should_replicate_source_default(each.name))
    }


def config_changes(
    source: Iterable[ConfigEntry], target: Iterable[ConfigEntry], rules: PropertyFilter
) -> list[AlterConfigOp]:
    """What makes the target's topic like the source's; nothing for what is equal already."""
    there = {each.name: each for each in target}
    changes = []
    for entry in source:
        if not _is_copied(entry, rules):
            continue
        now = there.get(entry.name)
        is_set = now is not None and now.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
        if entry.is_default and not rules.should_replicate_source_default(entry.name):
            if is_set:
                changes.append(AlterConfigOp.delete(entry.name))
        elif not is_set or now is None or now.value != entry.value:
            changes.append(AlterConfigOp.set(entry.name, entry.value or ""))
    return changes


def target_acls(bindings: Iterable[AclBinding], selection: Selection) -> list[AclBinding]:
    """ACLs of copied topics for their copies. Only the mirror writes to a copy, so permission to
    write is left out and permission for everything becomes one to read."""
    found = []
    for binding in bindings:
        pattern, entry = binding.pattern, binding.entry
        is_allowed = entry.permission_type is AclPermissionType.ALLOW
        if (
            pattern.resource_type is not ResourceType.TOPIC
            or pattern.pattern_type is not PatternType.LITERAL
            or (is_allowed and entry.operation is AclOperation.WRITE)
            or not selection.takes(pattern.name)
        ):
            continue
        if is_allowed and entry.operation is AclOperation.ALL:
            entry = AccessControlEntry(
                entry.principal, entry.host, AclOperation.READ, entry.permission_type
            )
        remote = ResourcePattern(
            ResourceType.TOPIC, selection.remote(pattern.name), PatternType.LITERAL
        )
        found.append(AclBinding(remote, entry))
    return found
