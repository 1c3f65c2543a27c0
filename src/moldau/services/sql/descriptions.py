"""What the cluster adds to SHOW, DESCRIBE and EXPLAIN: replicas, offsets, tasks, push queries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moldau.client.admin import Admin, OffsetSpec
from moldau.client.errors import KafkaError
from moldau.client.topics import TopicPartition
from moldau.services.sql.hosting import QueryHost
from moldau.services.sql.machine.entities import Entity, query_descriptions
from moldau.services.sql.machine.statistics import shown
from moldau.streams import KafkaStreams

__all__ = ["Descriptions"]


class Descriptions:
    """Completes what the engine has listed. What the cluster does not say becomes a warning."""

    def __init__(self, admin: Admin, host: QueryHost) -> None:
        self._admin = admin
        self._host = host
        self._rules: dict[str, Callable[[Entity], None]] = {
            "queries": self._queries,
            "queryDescription": self._query_descriptions,
            "query_descriptions": self._query_descriptions,
            "sourceDescription": self._sources,
            "source_descriptions": self._sources,
            "kafka_topics": self._topics,
            "kafka_topics_extended": self._topics,
        }

    def complete(self, entity: Entity) -> None:
        rule = self._rules.get(entity["@type"])
        if rule is None:
            return
        try:
            rule(entity)
        except KafkaError as error:
            entity["warnings"].append({"message": f"Error from Kafka: {error}"})

    # Queries.

    def _queries(self, entity: Entity) -> None:
        entity["queries"] += [
            {
                "queryString": query.sql,
                "sinks": [],
                "sinkKafkaTopics": [],
                "id": query.id,
                "statusCount": {state: 1},
                "queryType": "PUSH",
                "state": state,
            }
            for query, state in self._host.push_queries()
        ]

    def _query_descriptions(self, entity: Entity) -> None:
        address = self._host.address or "localhost:0"
        for each in query_descriptions(entity):
            each["queryErrors"] = [fault.entity for fault in self._host.failures(each["id"])]
            streams = self._host.streams(each["id"])
            if streams is None:
                continue
            each["ksqlHostQueryStatus"] = {address: _status(each["state"])}
            if isinstance(streams, KafkaStreams):
                each["consumerGroupId"] = streams.settings.application_id
                each["tasksMetadata"] = self._tasks(streams)

    def _tasks(self, streams: KafkaStreams) -> list[Entity]:
        found = [
            task for thread in streams.metadata_for_local_threads() for task in thread.active_tasks
        ]
        ends = self._offsets(
            {part for task in found for part in task.topic_partitions}, OffsetSpec.latest()
        )
        return [
            {
                "taskId": str(task.task_id),
                "topicOffsets": [
                    {
                        "topicPartitionEntity": {"topic": part.topic, "partition": part.partition},
                        "endOffset": ends.get(part, 0),
                        "committedOffset": task.committed_offsets.get(part, 0),
                    }
                    for part in sorted(task.topic_partitions)
                ],
                "timeCurrentIdlingStarted": None,
            }
            for task in sorted(found, key=lambda each: each.task_id)
        ]

    # Sources.

    def _sources(self, entity: Entity) -> None:
        single = entity.get("sourceDescription")
        rows = entity["sourceDescriptions"] if single is None else [single]
        replicas = self._replicas({each["topic"] for each in rows})
        if any(each["extended"] for each in rows):
            self._host.sample()
        for each in rows:
            of_topic = replicas.get(each["topic"], [])
            each["partitions"] = len(of_topic)
            each["replication"] = of_topic[0] if of_topic else 0
            if each["extended"]:
                self._add_statistics(each)
                each["queryOffsetSummaries"] = self._offset_summaries(each["writeQueries"])

    def _add_statistics(self, description: Entity) -> None:
        """What the queries of this server have read from and written to a source."""
        stats, errors = self._host.metering.of(description["topic"])
        host = self._host.address or "localhost:0"
        description["statistics"] = shown(stats, "last-message")
        description["errorStats"] = shown(errors, "last-failed")
        description["clusterStatistics"] = [each.entity(host) for each in stats]
        description["clusterErrorStats"] = [each.entity(host) for each in errors]

    def _offset_summaries(self, queries: Iterable[Mapping[str, Any]]) -> list[Entity]:
        """How far the queries that write a source have read."""
        summaries = []
        for query in queries:
            streams = self._host.streams(query["id"])
            if streams is None:
                continue
            group = streams.settings.application_id
            committed = self._admin.list_consumer_group_offsets(group)[group]
            starts = self._offsets(committed, OffsetSpec.earliest())
            ends = self._offsets(committed, OffsetSpec.latest())
            by_topic: dict[str, list[Entity]] = defaultdict(list)
            for part, at in sorted(committed.items()):
                by_topic[part.topic].append(
                    {
                        "partition": part.partition,
                        "logStartOffset": starts.get(part, 0),
                        "logEndOffset": ends.get(part, 0),
                        "consumerOffset": 0 if at is None else at.offset,
                    }
                )
            topics = [{"kafkaTopic": name, "offsets": each} for name, each in by_topic.items()]
            summaries.append({"groupId": group, "topicSummaries": topics})
        return summaries

    def _offsets(
        self, partitions: Iterable[TopicPartition], at: OffsetSpec
    ) -> dict[TopicPartition, int]:
        wanted = dict.fromkeys(partitions, at)
        if not wanted:
            return {}
        return {part: each.offset for part, each in self._admin.list_offsets(wanted).items()}

    # Topics.

    def _topics(self, entity: Entity) -> None:
        rows = entity["topics"]
        replicas = self._replicas({each["name"] for each in rows})
        for each in rows:
            each["replicaInfo"] = replicas.get(each["name"], each["replicaInfo"])
        if entity["@type"] == "kafka_topics_extended":
            consumers, groups = self._readers()
            for each in rows:
                each["consumerCount"] = consumers[each["name"]]
                each["consumerGroupCount"] = groups[each["name"]]

    def _replicas(self, topics: set[str]) -> dict[str, list[int]]:
        """The number of replicas of each partition."""
        found = self._admin.describe_topics(sorted(topics), check=False) if topics else {}
        replicas = {}
        for name in topics:
            try:
                replicas[name] = [len(each.replicas) for each in found[name].partitions]
            except KafkaError:
                # Deleted in the meantime.
                continue
        return replicas

    def _readers(self) -> tuple[Counter[str], Counter[str]]:
        """Assigned partitions, and groups that read them, by topic."""
        consumers: Counter[str] = Counter()
        groups: Counter[str] = Counter()
        names = [each.group_id for each in self._admin.list_consumer_groups()]
        found = self._admin.describe_consumer_groups(names, check=False) if names else {}
        for name in names:
            try:
                members = found[name].members
            except KafkaError:
                continue
            read = [part.topic for member in members for part in member.assignment.topic_partitions]
            consumers.update(read)
            groups.update(set(read))
        return consumers, groups


def _status(state: str) -> str:
    """ksqlDB's status of a query on one server."""
    return state if state in ("ERROR", "PAUSED", "UNRESPONSIVE") else "RUNNING"
