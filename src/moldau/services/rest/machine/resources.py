"""Resources of API v3: kind, metadata with links, and the facts, in the original's order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from moldau.client.admin.acl_values import AclBinding
from moldau.client.admin.cluster_values import ClusterDescription
from moldau.client.admin.config_values import ConfigEntry
from moldau.client.admin.group_values import ConsumerGroupDescription, MemberDescription
from moldau.client.admin.partition_values import PartitionReassignment
from moldau.client.admin.topic_values import TopicDescription, TopicPartitionInfo
from moldau.client.topics import Node, TopicPartition
from moldau.services.rest.machine.links import Links

__all__ = ["Resources"]

Json = dict[str, Any]


class Resources:
    """Builds the resources of one cluster for one request's links."""

    def __init__(self, links: Links, cluster_id: str) -> None:
        self.links = links
        self.cluster_id = cluster_id

    # What all have.

    def url(self, *segments: str | int) -> str:
        return self.links.url("clusters", self.cluster_id, *segments)

    def related(self, *segments: str | int) -> dict[str, str]:
        return {"related": self.url(*segments)}

    def collection(self, kind: str, data: Iterable[Json], self_url: str) -> Json:
        return {
            "kind": f"{kind}List",
            "metadata": {"self": self_url, "next": None},
            "data": list(data),
        }

    def _head(self, kind: str, path: tuple[str | int, ...], names: tuple[str | int, ...]) -> Json:
        return {
            "kind": kind,
            "metadata": {
                "self": self.url(*path),
                "resource_name": self.links.crn("kafka", self.cluster_id, *names),
            },
            "cluster_id": self.cluster_id,
        }

    # Clusters and brokers.

    def cluster(self, found: ClusterDescription) -> Json:
        body: Json = {
            "kind": "KafkaCluster",
            "metadata": {
                "self": self.links.url("clusters", self.cluster_id),
                "resource_name": self.links.crn("kafka", self.cluster_id),
            },
            "cluster_id": self.cluster_id,
        }
        if found.controller is not None:
            body["controller"] = self.related("brokers", found.controller.id)
        return body | {
            "acls": self.related("acls"),
            "brokers": self.related("brokers"),
            "broker_configs": self.related("broker-configs"),
            "consumer_groups": self.related("consumer-groups"),
            "topics": self.related("topics"),
            "partition_reassignments": self.related(
                "topics", "-", "partitions", "-", "reassignment"
            ),
        }

    def broker(self, node: Node) -> Json:
        head = self._head("KafkaBroker", ("brokers", node.id), ("broker", node.id))
        return head | {
            "broker_id": node.id,
            "host": node.host,
            "port": node.port,
            "rack": node.rack,
            "configs": self.related("brokers", node.id, "configs"),
            "partition_replicas": self.related("brokers", node.id, "partition-replicas"),
        }

    # Configurations.

    def broker_config(self, broker_id: int, entry: ConfigEntry) -> Json:
        head = self._head(
            "KafkaBrokerConfig",
            ("brokers", broker_id, "configs", entry.name),
            ("broker", broker_id, "config", entry.name),
        )
        return head | {"broker_id": broker_id} | _config(entry)

    def cluster_config(self, entry: ConfigEntry) -> Json:
        head = self._head(
            "KafkaClusterConfig",
            ("broker-configs", entry.name),
            ("broker-config", entry.name),
        )
        return head | {"config_type": "BROKER"} | _config(entry)

    def topic_config(self, topic: str, entry: ConfigEntry) -> Json:
        head = self._head(
            "KafkaTopicConfig",
            ("topics", topic, "configs", entry.name),
            ("topic", topic, "config", entry.name),
        )
        return head | {"topic_name": topic} | _config(entry)

    # Topics and partitions.

    def topic(
        self,
        name: str,
        *,
        is_internal: bool,
        replication_factor: int,
        partitions_count: int,
        authorized_operations: Iterable[str] = (),
    ) -> Json:
        return self._head("KafkaTopic", ("topics", name), ("topic", name)) | {
            "topic_name": name,
            "is_internal": is_internal,
            "replication_factor": replication_factor,
            "partitions_count": partitions_count,
            "partitions": self.related("topics", name, "partitions"),
            "configs": self.related("topics", name, "configs"),
            "partition_reassignments": self.related(
                "topics", name, "partitions", "-", "reassignment"
            ),
            "authorized_operations": sorted(authorized_operations),
        }

    def described_topic(self, found: TopicDescription) -> Json:
        return self.topic(
            found.name,
            is_internal=found.is_internal,
            replication_factor=len(found.partitions[0].replicas) if found.partitions else 0,
            partitions_count=len(found.partitions),
            authorized_operations=[each.name for each in found.authorized_operations or ()],
        )

    def partition(self, topic: str, found: TopicPartitionInfo) -> Json:
        path = ("topics", topic, "partitions", found.partition)
        body = self._head(
            "KafkaPartition", path, ("topic", topic, "partition", found.partition)
        ) | {
            "topic_name": topic,
            "partition_id": found.partition,
        }
        if found.leader is not None:
            body["leader"] = self.related(*path, "replicas", found.leader.id)
        return body | {
            "replicas": self.related(*path, "replicas"),
            "reassignment": self.related(*path, "reassignment"),
        }

    def partition_offsets(
        self, topic: str, partition: int, *, earliest: int, latest: int, offset_type: str
    ) -> Json:
        names = ("topic", topic, "partition", partition, "offset_type", offset_type)
        head = self._head(
            "KafkaPartition", ("topics", topic, "partitions", partition, "offset"), names
        )
        return head | {
            "topic_name": topic,
            "partition_id": partition,
            "earliest_offset": earliest,
            "latest_offset": latest,
        }

    def replica(self, topic: str, partition: TopicPartitionInfo, broker_id: int) -> Json:
        number = partition.partition
        head = self._head(
            "KafkaReplica",
            ("topics", topic, "partitions", number, "replicas", broker_id),
            ("topic", topic, "partition", number, "replica", broker_id),
        )
        return head | {
            "topic_name": topic,
            "partition_id": number,
            "broker_id": broker_id,
            "is_leader": partition.leader is not None and partition.leader.id == broker_id,
            "is_in_sync": any(each.id == broker_id for each in partition.isr),
            "broker": self.related("brokers", broker_id),
        }

    def reassignment(self, partition: TopicPartition, found: PartitionReassignment) -> Json:
        path = ("topics", partition.topic, "partitions", partition.partition)
        names = ("topic", partition.topic, "partition", partition.partition, "reassignment")
        return self._head("KafkaReassignment", (*path, "reassignment"), names) | {
            "topic_name": partition.topic,
            "partition_id": partition.partition,
            "adding_replicas": list(found.adding_replicas),
            "removing_replicas": list(found.removing_replicas),
            "replicas": self.related(*path, "replicas"),
        }

    # Groups.

    def group(self, found: ConsumerGroupDescription) -> Json:
        path = ("consumer-groups", found.group_id)
        mixed = any(each.upgraded is False for each in found.members)
        return self._head("KafkaConsumerGroup", path, ("consumer-group", found.group_id)) | {
            "consumer_group_id": found.group_id,
            "is_simple": found.is_simple_consumer_group,
            "partition_assignor": found.partition_assignor,
            "state": found.group_state.name,
            "type": found.type.name,
            "is_mixed_consumer_group": mixed,
            "coordinator": self.related("brokers", found.coordinator.id),
            "consumers": self.related(*path, "consumers"),
            "lag_summary": self.related(*path, "lag-summary"),
        }

    def consumer(self, group_id: str, member: MemberDescription) -> Json:
        path = ("consumer-groups", group_id, "consumers", member.consumer_id)
        names = ("consumer-group", group_id, "consumer", member.consumer_id)
        return self._head("KafkaConsumer", path, names) | {
            "consumer_group_id": group_id,
            "consumer_id": member.consumer_id,
            "instance_id": member.group_instance_id,
            "client_id": member.client_id,
            "assignments": self.related(*path, "assignments"),
        }

    def assignment(self, group_id: str, consumer_id: str, partition: TopicPartition) -> Json:
        place = (partition.topic, "partitions", partition.partition)
        path = ("consumer-groups", group_id, "consumers", consumer_id, "assignments", *place)
        names = (
            "consumer-group", group_id, "consumer", consumer_id,
            "assignment", partition.topic, "partition", partition.partition,
        )  # fmt: skip
        return self._head("KafkaConsumerAssignment", path, names) | {
            "consumer_group_id": group_id,
            "consumer_id": consumer_id,
            "topic_name": partition.topic,
            "partition_id": partition.partition,
            "partition": self.related("topics", *place),
            "lag": self.related("consumer-groups", group_id, "lags", *place),
        }

    def lag(self, group_id: str, lag: Mapping[str, Any]) -> Json:
        place = (lag["topic_name"], "partitions", lag["partition_id"])
        names = ("consumer-group", group_id, "lag", place[0], "partition", place[2])
        path = ("consumer-groups", group_id, "lags", *place)
        head = self._head("KafkaConsumerLag", path, names)
        return head | {"consumer_group_id": group_id, **lag}

    def lag_summary(self, group_id: str, lags: list[Mapping[str, Any]]) -> Json:
        """`lags` is not empty."""
        largest = max(lags, key=lambda each: each["lag"])
        path = ("consumer-groups", group_id, "lag-summary")
        names = ("consumer-group", group_id, "lag-summary")
        return self._head("KafkaConsumerGroupLagSummary", path, names) | {
            "consumer_group_id": group_id,
            "max_lag_consumer_id": largest["consumer_id"],
            "max_lag_instance_id": largest["instance_id"],
            "max_lag_client_id": largest["client_id"],
            "max_lag_topic_name": largest["topic_name"],
            "max_lag_partition_id": largest["partition_id"],
            "max_lag": largest["lag"],
            "total_lag": sum(each["lag"] for each in lags),
            "max_lag_consumer": self.related(
                "consumer-groups", group_id, "consumers", largest["consumer_id"]
            ),
            "max_lag_partition": self.related(
                "topics", largest["topic_name"], "partitions", largest["partition_id"]
            ),
        }

    # ACLs.

    def acl(self, binding: AclBinding) -> Json:
        facts = {
            "resource_type": binding.pattern.resource_type.name,
            "resource_name": binding.pattern.name,
            "pattern_type": binding.pattern.pattern_type.name,
            "principal": binding.entry.principal,
            "host": binding.entry.host,
            "operation": binding.entry.operation.name,
            "permission": binding.entry.permission_type.name,
        }
        query = urlencode(facts, quote_via=quote, safe="*")
        return {
            "kind": "KafkaAcl",
            "metadata": {"self": f"{self.url('acls')}?{query}"},
            "cluster_id": self.cluster_id,
            **facts,
        }


def _config(entry: ConfigEntry) -> Json:
    return {
        "name": entry.name,
        "value": entry.value,
        "is_default": entry.is_default,
        "is_read_only": entry.is_read_only,
        "is_sensitive": entry.is_sensitive,
        "source": entry.source.name,
        "synonyms": [
            {"name": each.name, "value": each.value, "source": each.source.name}
            for each in entry.synonyms
        ],
    }
