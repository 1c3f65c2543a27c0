"""The admin client: every operation of Kafka's Admin, on an event loop.

Each area of operations is an object of its own over one connection; `AsyncAdmin` is their common
face. To add an operation, write it in its area and list it here; tools/generate_twins.py then gives
the blocking client the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack
from uuid import UUID

from moldau.client.admin.acls import AclOperations
from moldau.client.admin.base import AdminBase
from moldau.client.admin.cluster import ClusterOperations
from moldau.client.admin.configs import ConfigOperations
from moldau.client.admin.connection import AdminConnection
from moldau.client.admin.driver import Driver
from moldau.client.admin.group_listings import GroupListingOperations
from moldau.client.admin.group_offsets import GroupOffsetOperations
from moldau.client.admin.groups import GroupOperations
from moldau.client.admin.log_dirs import LogDirOperations
from moldau.client.admin.offsets import OffsetOperations
from moldau.client.admin.partitions import PartitionOperations
from moldau.client.admin.security import SecurityOperations
from moldau.client.admin.share_offsets import ShareOffsetOperations
from moldau.client.admin.topics import TopicOperations
from moldau.client.admin.transactions import TransactionOperations
from moldau.client.metrics import KafkaMetric, MetricName
from moldau.client.other_clients import ADMIN_NAMES, point_from

if TYPE_CHECKING:
    from moldau.client.config.keywords import AdminKeywords

__all__ = ["AsyncAdmin"]

A = TypeVar("A", bound=AdminBase)
P = ParamSpec("P")
R = TypeVar("R")


class _Area(Generic[A]):
    """Forwards methods of an admin client to its object of this class."""

    def __init__(self, kind: Callable[[Driver], A]) -> None:
        self._kind = kind

    def of(self, admin: AsyncAdmin) -> A:
        area: A | None = admin._areas.get(self)
        if area is None:
            area = admin._areas[self] = self._kind(admin._connection.driver)
        return area

    def __call__(
        self, method: Callable[Concatenate[A, P], Coroutine[Any, Any, R]]
    ) -> Callable[Concatenate[AsyncAdmin, P], Coroutine[Any, Any, R]]:
        @wraps(method)
        async def forward(admin: AsyncAdmin, /, *args: P.args, **kwargs: P.kwargs) -> R:
            return await method(self.of(admin), *args, **kwargs)

        return forward


_topics = _Area(TopicOperations)
_configs = _Area(ConfigOperations)
_cluster = _Area(ClusterOperations)
_group_listings = _Area(GroupListingOperations)
_groups = _Area(GroupOperations)
_group_offsets = _Area(GroupOffsetOperations)
_share_offsets = _Area(ShareOffsetOperations)
_offsets = _Area(OffsetOperations)
_partitions = _Area(PartitionOperations)
_log_dirs = _Area(LogDirOperations)
_transactions = _Area(TransactionOperations)
_acls = _Area(AclOperations)
_security = _Area(SecurityOperations)


@point_from(ADMIN_NAMES)
class AsyncAdmin:
    """Administers a cluster; made and used on one event loop.

    Operations on several things give `Results`, by thing. They raise the first error (its
    `results` holds what became of the others), or with `check=False` leave that to the caller.
    Each retries what passes until its `timeout` (seconds), `default.api.timeout.ms` if None.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, **settings: Unpack[AdminKeywords]
    ) -> None:
        self._connection = AdminConnection(config, settings)
        # Each area is created when its first operation is called.
        self._areas: dict[_Area[Any], Any] = {}

    create_topics = _topics(TopicOperations.create_topics)
    delete_topics = _topics(TopicOperations.delete_topics)
    list_topics = _topics(TopicOperations.list_topics)
    describe_topics = _topics(TopicOperations.describe_topics)
    create_partitions = _topics(TopicOperations.create_partitions)

    describe_configs = _configs(ConfigOperations.describe_configs)
    incremental_alter_configs = _configs(ConfigOperations.incremental_alter_configs)
    list_config_resources = _configs(ConfigOperations.list_config_resources)
    list_client_metrics_resources = _configs(ConfigOperations.list_client_metrics_resources)

    describe_cluster = _cluster(ClusterOperations.describe_cluster)
    describe_features = _cluster(ClusterOperations.describe_features)
    update_features = _cluster(ClusterOperations.update_features)
    describe_metadata_quorum = _cluster(ClusterOperations.describe_metadata_quorum)
    add_raft_voter = _cluster(ClusterOperations.add_raft_voter)
    remove_raft_voter = _cluster(ClusterOperations.remove_raft_voter)
    unregister_broker = _cluster(ClusterOperations.unregister_broker)

    list_groups = _group_listings(GroupListingOperations.list_groups)
    list_consumer_groups = _group_listings(GroupListingOperations.list_consumer_groups)
    list_share_groups = _group_listings(GroupListingOperations.list_share_groups)
    list_streams_groups = _group_listings(GroupListingOperations.list_streams_groups)

    describe_consumer_groups = _groups(GroupOperations.describe_consumer_groups)
    describe_classic_groups = _groups(GroupOperations.describe_classic_groups)
    describe_share_groups = _groups(GroupOperations.describe_share_groups)
    describe_streams_groups = _groups(GroupOperations.describe_streams_groups)
    delete_consumer_groups = _groups(GroupOperations.delete_consumer_groups)
    delete_share_groups = _groups(GroupOperations.delete_share_groups)
    delete_streams_groups = _groups(GroupOperations.delete_streams_groups)
    remove_members_from_consumer_group = _groups(GroupOperations.remove_members_from_consumer_group)

    list_consumer_group_offsets = _group_offsets(GroupOffsetOperations.list_consumer_group_offsets)
    list_streams_group_offsets = _group_offsets(GroupOffsetOperations.list_streams_group_offsets)
    alter_consumer_group_offsets = _group_offsets(
        GroupOffsetOperations.alter_consumer_group_offsets
    )
    alter_streams_group_offsets = _group_offsets(GroupOffsetOperations.alter_streams_group_offsets)
    delete_consumer_group_offsets = _group_offsets(
        GroupOffsetOperations.delete_consumer_group_offsets
    )
    delete_streams_group_offsets = _group_offsets(
        GroupOffsetOperations.delete_streams_group_offsets
    )

    list_share_group_offsets = _share_offsets(ShareOffsetOperations.list_share_group_offsets)
    alter_share_group_offsets = _share_offsets(ShareOffsetOperations.alter_share_group_offsets)
    delete_share_group_offsets = _share_offsets(ShareOffsetOperations.delete_share_group_offsets)

    list_offsets = _offsets(OffsetOperations.list_offsets)
    delete_records = _offsets(OffsetOperations.delete_records)
    elect_leaders = _partitions(PartitionOperations.elect_leaders)
    alter_partition_reassignments = _partitions(PartitionOperations.alter_partition_reassignments)
    list_partition_reassignments = _partitions(PartitionOperations.list_partition_reassignments)

    alter_replica_log_dirs = _log_dirs(LogDirOperations.alter_replica_log_dirs)
    describe_log_dirs = _log_dirs(LogDirOperations.describe_log_dirs)
    describe_replica_log_dirs = _log_dirs(LogDirOperations.describe_replica_log_dirs)

    describe_producers = _transactions(TransactionOperations.describe_producers)
    describe_transactions = _transactions(TransactionOperations.describe_transactions)
    list_transactions = _transactions(TransactionOperations.list_transactions)
    abort_transaction = _transactions(TransactionOperations.abort_transaction)
    fence_producers = _transactions(TransactionOperations.fence_producers)
    force_terminate_transaction = _transactions(TransactionOperations.force_terminate_transaction)

    describe_acls = _acls(AclOperations.describe_acls)
    create_acls = _acls(AclOperations.create_acls)
    delete_acls = _acls(AclOperations.delete_acls)

    create_delegation_token = _security(SecurityOperations.create_delegation_token)
    renew_delegation_token = _security(SecurityOperations.renew_delegation_token)
    expire_delegation_token = _security(SecurityOperations.expire_delegation_token)
    describe_delegation_token = _security(SecurityOperations.describe_delegation_token)
    describe_client_quotas = _security(SecurityOperations.describe_client_quotas)
    alter_client_quotas = _security(SecurityOperations.alter_client_quotas)
    describe_user_scram_credentials = _security(SecurityOperations.describe_user_scram_credentials)
    alter_user_scram_credentials = _security(SecurityOperations.alter_user_scram_credentials)

    def __repr__(self) -> str:
        return f"<AsyncAdmin at {self._described()}>"

    def _described(self) -> str:
        """Where the cluster is, and whether the client is closed."""
        closed = ", closed" if self._connection.closed else ""
        return f"{self._connection.cluster.bootstrap}{closed}"

    async def __aenter__(self) -> AsyncAdmin:
        """Raises ConfigError if no name in `bootstrap.servers` resolves, as the first call does
        otherwise."""
        await self._connection.cluster.bootstrap.resolve()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self, timeout: float | None = None) -> None:
        """Close all connections. Operations under way fail.

        >>> await admin.close()
        """
        await self._connection.close(timeout)

    def metrics(self) -> dict[MetricName, KafkaMetric]:
        """The client's metrics, by Kafka's names.

        >>> rates = {name.name: metric.value for name, metric in admin.metrics().items()}
        """
        return self._connection.metrics.metrics()

    async def client_instance_id(self, timeout: float | None = None) -> UUID:
        """The id under which the cluster knows this client's metrics; always the same one.

        >>> print(await admin.client_instance_id(timeout=5))
        """
        return await self._connection.client_instance_id(timeout)

    def register_metric_for_subscription(self, metric: KafkaMetric) -> None:
        """Push an application metric with the client's own, if the cluster subscribes to it.

        >>> admin.register_metric_for_subscription(metric)
        """
        if self._connection.telemetry is not None:
            self._connection.telemetry.register(metric)

    def unregister_metric_from_subscription(self, metric: KafkaMetric) -> None:
        """Stop pushing the metric.

        >>> admin.unregister_metric_from_subscription(metric)
        """
        if self._connection.telemetry is not None:
            self._connection.telemetry.unregister(metric)
