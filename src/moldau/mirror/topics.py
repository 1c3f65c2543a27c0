"""Keeps the target's topics like the source's: partitions, settings and ACLs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moldau.client import AsyncAdmin, ConfigResource, KafkaError, NewTopic, TopicPartition
from moldau.client.admin.acl_values import AclBindingFilter, ResourcePatternFilter, ResourceType
from moldau.client.admin.config_values import ConfigEntry
from moldau.client.errors import SecurityDisabledError
from moldau.mirror.machine.settings import FlowSettings
from moldau.mirror.machine.topic_plan import (
    config_changes,
    new_topic_config,
    plan_topics,
    target_acls,
)
from moldau.mirror.plugins import Plugins

__all__ = ["TopicSync"]

logger = logging.getLogger(__name__)


class TopicSync:
    """See the module; the calls are those of the flow's schedule."""

    def __init__(
        self,
        settings: FlowSettings,
        plugins: Plugins,
        source: AsyncAdmin,
        target: AsyncAdmin,
    ) -> None:
        self._settings = settings
        self._plugins = plugins
        self._source = source
        self._target = target
        self._has_acls = True

    async def refresh(self) -> list[TopicPartition]:
        """Create what is missing in the target; the partitions of the source that are copied and
        that the target has."""
        selection = self._plugins.selection
        source = await self._counts(self._source, selection.takes)
        remotes = {selection.remote(topic) for topic in source}
        target = await self._counts(self._target, remotes.__contains__)
        plan = plan_topics(source, target, selection)
        if plan.create:
            await self._create(plan.create, source)
        if plan.grow:
            grown = await self._target.create_partitions(plan.grow, check=False)
            self._report("partitions could not be added to", grown.errors)
            for topic in grown.values_by_key:
                logger.info("%s: %s has %d partitions", self._name, topic, plan.grow[topic])
        if plan.create or plan.grow:
            target = await self._counts(self._target, remotes.__contains__)
        return [
            TopicPartition(topic, number)
            for topic, count in sorted(source.items())
            for number in range(min(count, target.get(selection.remote(topic), 0)))
        ]

    @property
    def _name(self) -> str:
        return str(self._settings.name)

    async def _counts(self, admin: AsyncAdmin, wanted: Callable[[str], bool]) -> dict[str, int]:
        names = [each for each in await admin.list_topics() if wanted(each)]
        found = await admin.describe_topics(names, check=False)
        return {str(each): len(what.partitions) for each, what in found.values_by_key.items()}

    async def _configs(
        self, admin: AsyncAdmin, topics: Iterable[str]
    ) -> dict[str, list[ConfigEntry]]:
        resources = [ConfigResource.topic(each) for each in topics]
        found = await admin.describe_configs(resources, check=False)
        self._report("the settings could not be read of", found.errors)
        return {
            resource.name: list(entries.values())
            for resource, entries in found.values_by_key.items()
        }

    async def _create(self, topics: dict[str, str], counts: dict[str, int]) -> None:
        factor = self._settings["replication.factor"]
        if "replication.factor" not in self._settings.properties:
            nodes = (await self._target.describe_cluster()).nodes
            factor = min(factor, len(nodes))
        configs = await self._configs(self._source, topics)
        new = [
            NewTopic(
                remote,
                counts[topic],
                None if factor < 0 else factor,
                configs=new_topic_config(configs.get(topic, []), self._plugins.properties),
            )
            for topic, remote in topics.items()
        ]
        made = await self._target.create_topics(new, check=False)
        self._report("a topic could not be created:", made.errors)
        for name in made.values_by_key:
            logger.info("%s: created the topic %s", self._name, name)

    async def sync_configs(self, partitions: Iterable[TopicPartition]) -> None:
        """Settings of topics that exist on both sides."""
        selection = self._plugins.selection
        topics = sorted({each.topic for each in partitions})
        if not topics:
            return
        source = await self._configs(self._source, topics)
        target = await self._configs(self._target, [selection.remote(each) for each in topics])
        changes = {}
        for topic, entries in source.items():
            remote = selection.remote(topic)
            if remote in target:
                found = config_changes(entries, target[remote], self._plugins.properties)
                if found:
                    changes[ConfigResource.topic(remote)] = found
        if changes:
            done = await self._target.incremental_alter_configs(changes, check=False)
            self._report("settings could not be changed of", done.errors)

    async def sync_acls(self) -> None:
        """ACLs of copied topics, as far as they concern reading."""
        if not self._has_acls:
            return
        every = AclBindingFilter(ResourcePatternFilter(ResourceType.TOPIC))
        try:
            bindings = await self._source.describe_acls(every)
        except SecurityDisabledError:
            self._has_acls = False
            logger.info(
                "%s: the source has no authorizer, so ACLs are not copied; "
                "sync.topic.acls.enabled=false turns this off",
                self._name,
            )
            return
        wanted = target_acls(bindings, self._plugins.selection)
        if not wanted:
            return
        there = set(await self._target.describe_acls(every))
        missing = [each for each in wanted if each not in there]
        if missing:
            made = await self._target.create_acls(missing, check=False)
            self._report("an ACL could not be copied:", made.errors)

    def _report(self, what: str, errors: Mapping[Any, KafkaError]) -> None:
        for each, error in errors.items():
            logger.warning("%s: %s %s: %s", self._name, what, getattr(each, "name", each), error)
