"""The blocking admin client. Made by tools/generate_blocking.py from AsyncAdmin; edit that.

Each call runs on the client's own event loop thread and waits for its end there. Several threads
may use one client at the same time.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar, Unpack
from uuid import UUID

from moldau.client.admin.acl_values import AclBinding, AclBindingFilter, DeletedAcl
from moldau.client.admin.async_admin import AsyncAdmin
from moldau.client.admin.base import Listings
from moldau.client.admin.cluster_values import (
    ClusterDescription,
    FeatureMetadata,
    FeatureUpdate,
    QuorumInfo,
    RaftVoterEndpoint,
)
from moldau.client.admin.config_values import (
    AlterConfigOp,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
)
from moldau.client.admin.group_values import (
    ClassicGroupDescription,
    ConsumerGroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    ListConsumerGroupOffsetsSpec,
    ListShareGroupOffsetsSpec,
    ListStreamsGroupOffsetsSpec,
    MemberToRemove,
    ShareGroupDescription,
    SharePartitionOffsetInfo,
    StreamsGroupDescription,
)
from moldau.client.admin.partition_values import (
    ElectionType,
    ListOffsetsResultInfo,
    LogDirDescription,
    NewPartitionReassignment,
    OffsetSpec,
    PartitionReassignment,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
)
from moldau.client.admin.security_values import (
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    DelegationToken,
    KafkaPrincipal,
    UserScramCredentialAlteration,
    UserScramCredentialsDescription,
)
from moldau.client.admin.topic_values import (
    CreatedTopic,
    DeletedRecords,
    NewPartitions,
    NewTopic,
    RecordsToDelete,
    TopicDescription,
    TopicListing,
)
from moldau.client.admin.transaction_values import (
    AbortTransactionSpec,
    PartitionProducerState,
    ProducerIdAndEpoch,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from moldau.client.config.keywords import AdminKeywords
from moldau.client.loop_thread import LoopThread
from moldau.client.metrics import KafkaMetric, MetricName
from moldau.client.other_clients import ADMIN_NAMES, point_from
from moldau.client.results import Results
from moldau.client.topics import OffsetAndMetadata, TopicPartition

__all__ = ["Admin"]

T = TypeVar("T")


@point_from(ADMIN_NAMES)
class Admin:
    """Administers a cluster.

    Operations on several things give `Results`, by thing. They raise the first error (its
    `results` holds what became of the others), or with `check=False` leave that to the caller.
    Each retries what passes until its `timeout` (seconds), `default.api.timeout.ms` if None.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, **settings: Unpack[AdminKeywords]
    ) -> None:
        self._admin = AsyncAdmin(config, **settings)
        self._thread = LoopThread("moldau-admin")
        try:
            self._call(self._admin.__aenter__())
        except BaseException:
            self._thread.stop()
            raise
        self._closed = False
        self._thread.ended_with(self, "Admin", self._admin.close)

    def __repr__(self) -> str:
        return f"<Admin at {self._admin._described()}>"

    def __enter__(self) -> Admin:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self, timeout: float | None = None) -> None:
        """Let go of all connections. Operations under way in other threads fail.

        >>> admin.close()
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._call(self._admin.close(timeout))
        finally:
            self._thread.stop()

    def _call(self, operation: Coroutine[Any, Any, T]) -> T:
        return self._thread.call(operation)

    def create_topics(
        self,
        topics: Iterable[NewTopic | str],
        *,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, CreatedTopic]:
        """Create topics; a plain name takes the broker's defaults.

        With `validate_only` nothing is created, only checked.

        >>> admin.create_topics([NewTopic("orders", 3, configs={"retention.ms": "3600000"})])
        """
        return self._call(
            self._admin.create_topics(
                topics,
                validate_only=validate_only,
                retry_on_quota_violation=retry_on_quota_violation,
                timeout=timeout,
                check=check,
            )
        )

    def delete_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        retry_on_quota_violation: bool = True,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str | UUID, None]:
        """Delete topics by name or by id.

        >>> admin.delete_topics(["orders"])
        """
        return self._call(
            self._admin.delete_topics(
                topics,
                retry_on_quota_violation=retry_on_quota_violation,
                timeout=timeout,
                check=check,
            )
        )

    def list_topics(
        self, *, list_internal: bool = False, timeout: float | None = None
    ) -> dict[str, TopicListing]:
        """All topics by name, the internal ones only if asked for.

        >>> print(sorted(admin.list_topics()))
        """
        return self._call(self._admin.list_topics(list_internal=list_internal, timeout=timeout))

    def describe_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        include_authorized_operations: bool = False,
        partition_size_limit_per_response: int = 2000,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str | UUID, TopicDescription]:
        """What topics are, by name or by id, with leader, replicas and ISR of each partition.

        By name, large topics come in pages, so that no response grows without bound.

        >>> print(len(admin.describe_topics(["orders"])["orders"].partitions))
        """
        return self._call(
            self._admin.describe_topics(
                topics,
                include_authorized_operations=include_authorized_operations,
                partition_size_limit_per_response=partition_size_limit_per_response,
                timeout=timeout,
                check=check,
            )
        )

    def create_partitions(
        self,
        new_partitions: Mapping[str, NewPartitions | int],
        *,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, None]:
        """Raise the number of partitions; a plain number is the total that is wanted.

        >>> admin.create_partitions({"orders": 6})
        """
        return self._call(
            self._admin.create_partitions(
                new_partitions,
                validate_only=validate_only,
                retry_on_quota_violation=retry_on_quota_violation,
                timeout=timeout,
                check=check,
            )
        )

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """The values of all keys of each resource, by key.

        Synonyms tell where else the value could come from, nearest first.

        >>> topic = ConfigResource.topic("orders")
        >>> print(admin.describe_configs([topic])[topic]["retention.ms"].value)
        """
        return self._call(
            self._admin.describe_configs(
                resources,
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
                timeout=timeout,
                check=check,
            )
        )

    def incremental_alter_configs(
        self,
        configs: Mapping[ConfigResource, Iterable[AlterConfigOp]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[ConfigResource, None]:
        """Change single keys; all operations on one resource take effect together.

        >>> change = AlterConfigOp("retention.ms", "3600000")
        >>> admin.incremental_alter_configs({ConfigResource.topic("orders"): [change]})
        """
        return self._call(
            self._admin.incremental_alter_configs(
                configs, validate_only=validate_only, timeout=timeout, check=check
            )
        )

    def list_config_resources(
        self, types: Collection[ConfigResourceType] = (), *, timeout: float | None = None
    ) -> list[ConfigResource]:
        """What has configurations, of the given types or of all.

        >>> print(admin.list_config_resources([ConfigResourceType.GROUP]))
        """
        return self._call(self._admin.list_config_resources(types, timeout=timeout))

    def list_client_metrics_resources(self, *, timeout: float | None = None) -> list[str]:
        """The names of all subscriptions to client metrics.

        >>> print(admin.list_client_metrics_resources())
        """
        return self._call(self._admin.list_client_metrics_resources(timeout=timeout))

    def describe_cluster(
        self,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
        timeout: float | None = None,
    ) -> ClusterDescription:
        """Id, controller and nodes: brokers, or controllers with `bootstrap.controllers`.

        >>> print(admin.describe_cluster().nodes)
        """
        return self._call(
            self._admin.describe_cluster(
                include_authorized_operations=include_authorized_operations,
                include_fenced_brokers=include_fenced_brokers,
                timeout=timeout,
            )
        )

    def describe_features(
        self, *, node_id: int | None = None, timeout: float | None = None
    ) -> FeatureMetadata:
        """Which features the cluster uses, and which a node supports.

        >>> print(admin.describe_features().finalized_features)
        """
        return self._call(self._admin.describe_features(node_id=node_id, timeout=timeout))

    def update_features(
        self,
        feature_updates: Mapping[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, None]:
        """Finalize levels of features, all or (with newer brokers) none of them.

        >>> admin.update_features({"transaction.version": FeatureUpdate(2)})
        """
        return self._call(
            self._admin.update_features(
                feature_updates, validate_only=validate_only, timeout=timeout, check=check
            )
        )

    def describe_metadata_quorum(self, *, timeout: float | None = None) -> QuorumInfo:
        """The controllers' quorum: its leader, voters and observers, and how far each is.

        >>> print(admin.describe_metadata_quorum().leader_id)
        """
        return self._call(self._admin.describe_metadata_quorum(timeout=timeout))

    def add_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: UUID,
        endpoints: Collection[RaftVoterEndpoint],
        *,
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Let a controller that observes take part in the metadata quorum.

        >>> endpoint = RaftVoterEndpoint("CONTROLLER", "10.0.0.4", 9093)
        >>> admin.add_raft_voter(4, directory_id, [endpoint])
        """
        self._call(
            self._admin.add_raft_voter(
                voter_id, voter_directory_id, endpoints, cluster_id=cluster_id, timeout=timeout
            )
        )

    def remove_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: UUID,
        *,
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Take a controller out of the metadata quorum.

        >>> admin.remove_raft_voter(4, directory_id)
        """
        self._call(
            self._admin.remove_raft_voter(
                voter_id, voter_directory_id, cluster_id=cluster_id, timeout=timeout
            )
        )

    def unregister_broker(self, broker_id: int, *, timeout: float | None = None) -> None:
        """Forget a broker that is gone for good.

        >>> admin.unregister_broker(4)
        """
        self._call(self._admin.unregister_broker(broker_id, timeout=timeout))

    def list_groups(
        self,
        *,
        group_states: Collection[GroupState] = (),
        types: Collection[GroupType] = (),
        protocol_types: Collection[str] = (),
        timeout: float | None = None,
        check: bool = True,
    ) -> Listings[GroupListing]:
        """All groups, or those of some states, types and protocols ("" is a protocol too).

        With `check=False` brokers that do not answer are in `errors` of the list.

        >>> print([group.group_id for group in admin.list_groups()])
        """
        return self._call(
            self._admin.list_groups(
                group_states=group_states,
                types=types,
                protocol_types=protocol_types,
                timeout=timeout,
                check=check,
            )
        )

    def list_consumer_groups(
        self,
        *,
        group_states: Collection[GroupState] = (),
        types: Collection[GroupType] = (),
        timeout: float | None = None,
        check: bool = True,
    ) -> Listings[GroupListing]:
        """The groups of consumers, of the classic and the new protocol, and simple ones.

        >>> print([group.group_id for group in admin.list_consumer_groups()])
        """
        return self._call(
            self._admin.list_consumer_groups(
                group_states=group_states, types=types, timeout=timeout, check=check
            )
        )

    def list_share_groups(
        self,
        *,
        group_states: Collection[GroupState] = (),
        timeout: float | None = None,
        check: bool = True,
    ) -> Listings[GroupListing]:
        """The share groups.

        >>> print([group.group_id for group in admin.list_share_groups()])
        """
        return self._call(
            self._admin.list_share_groups(group_states=group_states, timeout=timeout, check=check)
        )

    def list_streams_groups(
        self,
        *,
        group_states: Collection[GroupState] = (),
        timeout: float | None = None,
        check: bool = True,
    ) -> Listings[GroupListing]:
        """The streams groups.

        >>> print([group.group_id for group in admin.list_streams_groups()])
        """
        return self._call(
            self._admin.list_streams_groups(group_states=group_states, timeout=timeout, check=check)
        )

    def describe_consumer_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, ConsumerGroupDescription]:
        """Consumer groups of the new and of the classic protocol, with members and assignments.

        >>> print(admin.describe_consumer_groups(["kitchen"])["kitchen"].state)
        """
        return self._call(
            self._admin.describe_consumer_groups(
                group_ids,
                include_authorized_operations=include_authorized_operations,
                timeout=timeout,
                check=check,
            )
        )

    def describe_classic_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, ClassicGroupDescription]:
        """Groups of the classic protocol, whatever they are used for.

        >>> print(admin.describe_classic_groups(["kitchen"])["kitchen"].state)
        """
        return self._call(
            self._admin.describe_classic_groups(
                group_ids,
                include_authorized_operations=include_authorized_operations,
                timeout=timeout,
                check=check,
            )
        )

    def describe_share_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, ShareGroupDescription]:
        """Share groups, with members and assignments.

        >>> print(admin.describe_share_groups(["workers"])["workers"].members)
        """
        return self._call(
            self._admin.describe_share_groups(
                group_ids,
                include_authorized_operations=include_authorized_operations,
                timeout=timeout,
                check=check,
            )
        )

    def describe_streams_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, StreamsGroupDescription]:
        """Streams groups, with topology, members and tasks.

        >>> print(admin.describe_streams_groups(["totals"])["totals"].members)
        """
        return self._call(
            self._admin.describe_streams_groups(
                group_ids,
                include_authorized_operations=include_authorized_operations,
                timeout=timeout,
                check=check,
            )
        )

    def delete_consumer_groups(
        self, group_ids: Iterable[str], *, timeout: float | None = None, check: bool = True
    ) -> Results[str, None]:
        """Delete groups without members, with all their offsets.

        >>> admin.delete_consumer_groups(["kitchen"])
        """
        return self._call(
            self._admin.delete_consumer_groups(group_ids, timeout=timeout, check=check)
        )

    def delete_share_groups(
        self, group_ids: Iterable[str], *, timeout: float | None = None, check: bool = True
    ) -> Results[str, None]:
        """Delete share groups without members, with all their state.

        >>> admin.delete_share_groups(["workers"])
        """
        return self._call(self._admin.delete_share_groups(group_ids, timeout=timeout, check=check))

    def delete_streams_groups(
        self, group_ids: Iterable[str], *, timeout: float | None = None, check: bool = True
    ) -> Results[str, None]:
        """Delete streams groups without members, with all their offsets.

        >>> admin.delete_streams_groups(["totals"])
        """
        return self._call(
            self._admin.delete_streams_groups(group_ids, timeout=timeout, check=check)
        )

    def remove_members_from_consumer_group(
        self,
        group_id: str,
        members: Collection[MemberToRemove] | None = None,
        *,
        reason: str | None = None,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, None]:
        """Remove static members, or all members if none are named.

        The results are by `group.instance.id`, or by member id where there is none.

        >>> admin.remove_members_from_consumer_group("kitchen", [MemberToRemove("cook-1")])
        """
        return self._call(
            self._admin.remove_members_from_consumer_group(
                group_id, members, reason=reason, timeout=timeout, check=check
            )
        )

    def list_consumer_group_offsets(
        self,
        groups: str | Mapping[str, ListConsumerGroupOffsetsSpec | None],
        *,
        require_stable: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, dict[TopicPartition, OffsetAndMetadata | None]]:
        """The committed offsets of groups, None where a partition that was named has none.

        With `require_stable` offsets that an open transaction may still change are waited for.

        >>> print(admin.list_consumer_group_offsets("kitchen")["kitchen"])
        """
        return self._call(
            self._admin.list_consumer_group_offsets(
                groups, require_stable=require_stable, timeout=timeout, check=check
            )
        )

    def list_streams_group_offsets(
        self,
        groups: str | Mapping[str, ListStreamsGroupOffsetsSpec | None],
        *,
        require_stable: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, dict[TopicPartition, OffsetAndMetadata | None]]:
        """The committed offsets of streams groups, as for consumer groups.

        >>> print(admin.list_streams_group_offsets("totals")["totals"])
        """
        return self._call(
            self._admin.list_streams_group_offsets(
                groups, require_stable=require_stable, timeout=timeout, check=check
            )
        )

    def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, None]:
        """Set the committed offsets of a group that has no members.

        >>> offsets = {TopicPartition("orders", 0): OffsetAndMetadata(0)}
        >>> admin.alter_consumer_group_offsets("kitchen", offsets)
        """
        return self._call(
            self._admin.alter_consumer_group_offsets(
                group_id, offsets, timeout=timeout, check=check
            )
        )

    def alter_streams_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, None]:
        """Set the committed offsets of a streams group that has no members.

        >>> offsets = {TopicPartition("orders", 0): OffsetAndMetadata(0)}
        >>> admin.alter_streams_group_offsets("totals", offsets)
        """
        return self._call(
            self._admin.alter_streams_group_offsets(group_id, offsets, timeout=timeout, check=check)
        )

    def delete_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Collection[TopicPartition],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, None]:
        """Delete committed offsets of partitions that the group is not subscribed to.

        >>> admin.delete_consumer_group_offsets("kitchen", [TopicPartition("orders", 0)])
        """
        return self._call(
            self._admin.delete_consumer_group_offsets(
                group_id, partitions, timeout=timeout, check=check
            )
        )

    def delete_streams_group_offsets(
        self,
        group_id: str,
        partitions: Collection[TopicPartition],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, None]:
        """Delete committed offsets of a streams group.

        >>> admin.delete_streams_group_offsets("totals", [TopicPartition("orders", 0)])
        """
        return self._call(
            self._admin.delete_streams_group_offsets(
                group_id, partitions, timeout=timeout, check=check
            )
        )

    def list_share_group_offsets(
        self,
        groups: str | Mapping[str, ListShareGroupOffsetsSpec | None],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, dict[TopicPartition, SharePartitionOffsetInfo | None]]:
        """Where share groups start, None where that is not decided yet.

        >>> print(admin.list_share_group_offsets("workers")["workers"])
        """
        return self._call(
            self._admin.list_share_group_offsets(groups, timeout=timeout, check=check)
        )

    def alter_share_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, None]:
        """Set where a share group without members starts; deliveries so far are forgotten.

        >>> admin.alter_share_group_offsets("workers", {TopicPartition("orders", 0): 0})
        """
        return self._call(
            self._admin.alter_share_group_offsets(group_id, offsets, timeout=timeout, check=check)
        )

    def delete_share_group_offsets(
        self,
        group_id: str,
        topics: Collection[str],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, None]:
        """Forget the state of a share group without members for whole topics.

        >>> admin.delete_share_group_offsets("workers", ["jobs"])
        """
        return self._call(
            self._admin.delete_share_group_offsets(group_id, topics, timeout=timeout, check=check)
        )

    def list_offsets(
        self,
        topic_partition_offsets: Mapping[TopicPartition, OffsetSpec],
        *,
        isolation_level: str = "read_uncommitted",
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, ListOffsetsResultInfo]:
        """Offsets by time or by words as `OffsetSpec.latest()`, asked at the leaders.

        >>> found = admin.list_offsets({TopicPartition("orders", 0): OffsetSpec.latest()})
        >>> print(found[TopicPartition("orders", 0)].offset)
        """
        return self._call(
            self._admin.list_offsets(
                topic_partition_offsets,
                isolation_level=isolation_level,
                timeout=timeout,
                check=check,
            )
        )

    def delete_records(
        self,
        records_to_delete: Mapping[TopicPartition, RecordsToDelete],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, DeletedRecords]:
        """Delete what is before an offset in each partition.

        >>> admin.delete_records({TopicPartition("orders", 0): RecordsToDelete.before(100)})
        """
        return self._call(
            self._admin.delete_records(records_to_delete, timeout=timeout, check=check)
        )

    def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Collection[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, None]:
        """Let preferred replicas lead, or any replica where none in sync is left.

        Without partitions, of all of them; the results then have those that needed it.

        >>> admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("orders", 0)])
        """
        return self._call(
            self._admin.elect_leaders(election_type, partitions, timeout=timeout, check=check)
        )

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, NewPartitionReassignment | Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, None]:
        """Move replicas to other brokers; None cancels what is under way for a partition.

        >>> admin.alter_partition_reassignments({TopicPartition("orders", 0): [2, 3, 1]})
        """
        return self._call(
            self._admin.alter_partition_reassignments(
                reassignments,
                allow_replication_factor_change=allow_replication_factor_change,
                timeout=timeout,
                check=check,
            )
        )

    def list_partition_reassignments(
        self, partitions: Collection[TopicPartition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """What is being reassigned now, of some partitions or of all.

        >>> print(admin.list_partition_reassignments())
        """
        return self._call(self._admin.list_partition_reassignments(partitions, timeout=timeout))

    def alter_replica_log_dirs(
        self,
        replica_assignment: Mapping[TopicPartitionReplica, str],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartitionReplica, None]:
        """Move replicas to other directories of their brokers; returns when it has begun.

        >>> replica = TopicPartitionReplica("orders", 0, broker_id=1)
        >>> admin.alter_replica_log_dirs({replica: "/data2"})
        """
        return self._call(
            self._admin.alter_replica_log_dirs(replica_assignment, timeout=timeout, check=check)
        )

    def describe_log_dirs(
        self, brokers: Collection[int], *, timeout: float | None = None, check: bool = True
    ) -> Results[int, dict[str, LogDirDescription]]:
        """The log directories of brokers by path, with the replicas in them.

        >>> print(admin.describe_log_dirs([1])[1])
        """
        return self._call(self._admin.describe_log_dirs(brokers, timeout=timeout, check=check))

    def describe_replica_log_dirs(
        self,
        replicas: Collection[TopicPartitionReplica],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartitionReplica, ReplicaLogDirInfo]:
        """Where replicas are, and where they are being moved to.

        >>> replica = TopicPartitionReplica("orders", 0, broker_id=1)
        >>> print(admin.describe_replica_log_dirs([replica])[replica])
        """
        return self._call(
            self._admin.describe_replica_log_dirs(replicas, timeout=timeout, check=check)
        )

    def describe_producers(
        self,
        partitions: Collection[TopicPartition],
        *,
        broker_id: int | None = None,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, PartitionProducerState]:
        """The producers that partitions remember, as their leaders or one broker know them.

        >>> found = admin.describe_producers([TopicPartition("orders", 0)])
        >>> print(found[TopicPartition("orders", 0)].active_producers)
        """
        return self._call(
            self._admin.describe_producers(
                partitions, broker_id=broker_id, timeout=timeout, check=check
            )
        )

    def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout: float | None = None, check: bool = True
    ) -> Results[str, TransactionDescription]:
        """What the coordinators know of transactional ids.

        >>> print(admin.describe_transactions(["billing-1"])["billing-1"].state)
        """
        return self._call(
            self._admin.describe_transactions(transactional_ids, timeout=timeout, check=check)
        )

    def list_transactions(
        self,
        *,
        filtered_states: Collection[TransactionState] = (),
        filtered_producer_ids: Collection[int] = (),
        filtered_duration: int = -1,
        filtered_transactional_id_pattern: str | None = None,
        timeout: float | None = None,
        check: bool = True,
    ) -> Listings[TransactionListing]:
        """The transactions that all brokers coordinate, or those that fit the filters.

        The duration is in milliseconds: open for longer than that. The pattern is a regular
        expression of RE2. With `check=False` brokers that do not answer are in `errors`.

        >>> print(admin.list_transactions(filtered_duration=60_000))
        """
        return self._call(
            self._admin.list_transactions(
                filtered_states=filtered_states,
                filtered_producer_ids=filtered_producer_ids,
                filtered_duration=filtered_duration,
                filtered_transactional_id_pattern=filtered_transactional_id_pattern,
                timeout=timeout,
                check=check,
            )
        )

    def abort_transaction(
        self, spec: AbortTransactionSpec, *, timeout: float | None = None
    ) -> None:
        """Abort a transaction in one partition that its coordinator has forgotten.

        >>> spec = AbortTransactionSpec(TopicPartition("orders", 0), 4000, 1, 0)
        >>> admin.abort_transaction(spec)
        """
        self._call(self._admin.abort_transaction(spec, timeout=timeout))

    def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout: float | None = None, check: bool = True
    ) -> Results[str, ProducerIdAndEpoch]:
        """Shut out the producers that use transactional ids; their open transactions abort.

        >>> admin.fence_producers(["billing-1"])
        """
        return self._call(
            self._admin.fence_producers(transactional_ids, timeout=timeout, check=check)
        )

    def force_terminate_transaction(
        self, transactional_id: str, *, timeout: float | None = None
    ) -> None:
        """Abort the open transaction of a transactional id, and shut out its producer.

        >>> admin.force_terminate_transaction("billing-1")
        """
        self._call(self._admin.force_terminate_transaction(transactional_id, timeout=timeout))

    def describe_acls(
        self, filter: AclBindingFilter | None = None, *, timeout: float | None = None
    ) -> list[AclBinding]:
        """The access control lists that a filter matches, all of them without one.

        >>> print(admin.describe_acls())
        """
        return self._call(self._admin.describe_acls(filter, timeout=timeout))

    def create_acls(
        self, acls: Iterable[AclBinding], *, timeout: float | None = None, check: bool = True
    ) -> Results[AclBinding, None]:
        """Add access control lists; those that exist stay as they are.

        >>> topic = ResourcePattern(ResourceType.TOPIC, "orders")
        >>> entry = AccessControlEntry(
        ...     "User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW
        ... )
        >>> admin.create_acls([AclBinding(topic, entry)])
        """
        return self._call(self._admin.create_acls(acls, timeout=timeout, check=check))

    def delete_acls(
        self,
        filters: Iterable[AclBindingFilter],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[AclBindingFilter, tuple[DeletedAcl, ...]]:
        """Delete the access control lists that each filter matches.

        >>> admin.delete_acls([AclBindingFilter.any()])
        """
        return self._call(self._admin.delete_acls(filters, timeout=timeout, check=check))

    def create_delegation_token(
        self,
        *,
        owner: KafkaPrincipal | None = None,
        renewers: Collection[KafkaPrincipal] = (),
        max_lifetime_ms: int = -1,
        timeout: float | None = None,
    ) -> DelegationToken:
        """A token to log in with, for oneself or another owner; -1: the broker's lifetime.

        >>> token = admin.create_delegation_token(max_lifetime_ms=86_400_000)
        """
        return self._call(
            self._admin.create_delegation_token(
                owner=owner, renewers=renewers, max_lifetime_ms=max_lifetime_ms, timeout=timeout
            )
        )

    def renew_delegation_token(
        self, hmac: bytes, *, renew_time_period_ms: int = -1, timeout: float | None = None
    ) -> int:
        """Let a token live on; gives the time, in milliseconds, when it expires.

        >>> admin.renew_delegation_token(token.hmac)
        """
        return self._call(
            self._admin.renew_delegation_token(
                hmac, renew_time_period_ms=renew_time_period_ms, timeout=timeout
            )
        )

    def expire_delegation_token(
        self, hmac: bytes, *, expiry_time_period_ms: int = -1, timeout: float | None = None
    ) -> int:
        """Let a token end after a time, at once if negative; gives the time when it expires.

        >>> admin.expire_delegation_token(token.hmac)
        """
        return self._call(
            self._admin.expire_delegation_token(
                hmac, expiry_time_period_ms=expiry_time_period_ms, timeout=timeout
            )
        )

    def describe_delegation_token(
        self, owners: Collection[KafkaPrincipal] | None = None, *, timeout: float | None = None
    ) -> list[DelegationToken]:
        """The tokens of some owners, or all that one may see.

        >>> print(admin.describe_delegation_token())
        """
        return self._call(self._admin.describe_delegation_token(owners, timeout=timeout))

    def describe_client_quotas(
        self, filter: ClientQuotaFilter | None = None, *, timeout: float | None = None
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """Quotas by whom they are for, all of them without a filter.

        >>> print(admin.describe_client_quotas())
        """
        return self._call(self._admin.describe_client_quotas(filter, timeout=timeout))

    def alter_client_quotas(
        self,
        entries: Iterable[ClientQuotaAlteration],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[ClientQuotaEntity, None]:
        """Set and take away quotas.

        >>> alice = ClientQuotaEntity({"user": "alice"})
        >>> limit = ClientQuotaAlteration(alice, {"producer_byte_rate": 1_000_000.0})
        >>> admin.alter_client_quotas([limit])
        """
        return self._call(
            self._admin.alter_client_quotas(
                entries, validate_only=validate_only, timeout=timeout, check=check
            )
        )

    def describe_user_scram_credentials(
        self,
        users: Collection[str] | None = None,
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, UserScramCredentialsDescription]:
        """Which SCRAM credentials users have, all users if none are named.

        >>> print(admin.describe_user_scram_credentials(["alice"])["alice"])
        """
        return self._call(
            self._admin.describe_user_scram_credentials(users, timeout=timeout, check=check)
        )

    def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialAlteration],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, None]:
        """Set and delete the SCRAM credentials of users; passwords do not leave this process.

        >>> info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        >>> change = UserScramCredentialUpsertion("alice", info, b"secret")
        >>> admin.alter_user_scram_credentials([change])
        """
        return self._call(
            self._admin.alter_user_scram_credentials(alterations, timeout=timeout, check=check)
        )

    def metrics(self) -> dict[MetricName, KafkaMetric]:
        """What the client has measured, by Kafka's names.

        >>> rates = {name.name: metric.value for name, metric in admin.metrics().items()}
        """
        return self._admin.metrics()

    def client_instance_id(self, timeout: float | None = None) -> UUID:
        """The id under which the cluster knows this client's metrics; always the same one.

        >>> print(admin.client_instance_id(timeout=5))
        """
        return self._call(self._admin.client_instance_id(timeout))

    def register_metric_for_subscription(self, metric: KafkaMetric) -> None:
        """Push a metric of the application too, if the cluster subscribes to it.

        >>> admin.register_metric_for_subscription(metric)
        """
        self._admin.register_metric_for_subscription(metric)

    def unregister_metric_from_subscription(self, metric: KafkaMetric) -> None:
        """Push it no longer.

        >>> admin.unregister_metric_from_subscription(metric)
        """
        self._admin.unregister_metric_from_subscription(metric)
