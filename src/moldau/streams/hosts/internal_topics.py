"""Creates the internal topics of an application, or checks those that exist."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from moldau.client import NewTopic
from moldau.client.environment import ENVIRONMENT
from moldau.client.errors import KafkaError, TopicExistsError
from moldau.streams.errors import StreamsError
from moldau.streams.hosts.administration import Administration
from moldau.streams.hosts.settings import StreamsSettings
from moldau.streams.machine.subtopologies import (
    Plan,
    changelog_config,
    partition_counts,
    repartition_config,
)

_log = logging.getLogger(__name__)


def ensure_topics(admin: Administration, plan: Plan, settings: StreamsSettings) -> dict[str, int]:
    """Create what is missing; the partition counts of all topics that the application uses.

    Raises MissingSourceTopicError for an input that does not exist, and StreamsError for an
    internal topic whose number of partitions is another than the topology needs.
    """
    known = _known_counts(admin, plan)
    wanted = partition_counts(plan, known)
    for topic, count in wanted.items():
        if topic in known and known[topic] != count:
            raise StreamsError(
                f"Existing internal topic {topic} has invalid partitions: expected: {count}; "
                f"actual: {known[topic]}. Use 'moldau streams-application-reset' tool to clean up "
                f"invalid topics before processing."
            )
    missing = [topic for topic in wanted if topic not in known]
    if missing:
        configs = _configs(plan, settings)
        _create(admin, [(topic, wanted[topic], configs[topic]) for topic in missing], settings)
    return known | wanted


def _known_counts(admin: Administration, plan: Plan) -> dict[str, int]:
    """The partition counts of the topics that the plan names, as far as they exist."""
    wanted = set(plan.repartition_counts) | plan.global_topics
    for each in plan.subtopologies:
        wanted |= each.topics
        wanted.update(changelog.topic for changelog in each.changelogs.values())
    with_patterns = [each for each in plan.subtopologies if each.patterns]
    found = admin.topics(None if with_patterns else wanted)
    return {
        topic: known.partitions
        for topic, known in found.items()
        if topic in wanted or any(each.reads(topic) for each in with_patterns)
    }


def _configs(plan: Plan, settings: StreamsSettings) -> dict[str, dict[str, str]]:
    overrides = settings.topic_configs
    configs = {topic: repartition_config(overrides) for topic in plan.repartition_counts}
    for each in plan.subtopologies:
        for changelog in each.changelogs.values():
            configs[changelog.topic] = changelog_config(
                changelog, overrides, additional_retention_ms=settings.additional_retention_ms
            )
    return configs


def _create(
    admin: Administration,
    topics: Iterable[tuple[str, int, dict[str, str]]],
    settings: StreamsSettings,
) -> None:
    """All instances create them at the same time: one that exists by now is as good."""
    topics = list(topics)
    new = [
        NewTopic(name, count, settings.replication_factor, configs)
        for name, count, configs in topics
    ]
    results = admin.create_topics(new)
    for topic, error in results.errors.items():
        if not isinstance(error, TopicExistsError):
            raise StreamsError(
                f"Could not create internal topic {topic}: {error}. Check replication.factor and "
                f"the permissions of the application."
            ) from error
    _log.info("created internal topics %s", ", ".join(name for name, _, _ in topics))
    _await_leaders(admin, [name for name, _, _ in topics], settings.task_timeout_ms)


def _await_leaders(admin: Administration, topics: list[str], limit_ms: int) -> None:
    environment = ENVIRONMENT.get()
    clock = environment.clock()
    deadline_ms = clock.elapsed_ms() + limit_ms
    while True:
        try:
            found = admin.topics(topics)
            if all(topic in found and found[topic].has_leaders for topic in topics):
                return
        except KafkaError as error:
            if not error.retriable or clock.elapsed_ms() > deadline_ms:
                raise
        if clock.elapsed_ms() > deadline_ms:
            raise StreamsError(f"internal topics have no leaders yet: {', '.join(topics)}")
        environment.sleep(0.05)
