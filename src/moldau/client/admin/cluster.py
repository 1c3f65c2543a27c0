"""The cluster as a whole: its nodes, its features, its metadata quorum."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from moldau import __version__
from moldau.client.admin.acl_values import operations_of
from moldau.client.admin.base import AdminBase
from moldau.client.admin.cluster_values import (
    ClusterDescription,
    FeatureMetadata,
    FeatureUpdate,
    FinalizedVersionRange,
    QuorumInfo,
    QuorumNode,
    RaftVoterEndpoint,
    ReplicaState,
    SupportedVersionRange,
)
from moldau.client.admin.driver import Answer, Call
from moldau.client.admin.routes import AnyRoute, BrokerRoute, ControllerRoute
from moldau.client.errors import (
    InvalidRequestError,
    UnknownServerError,
    UnsupportedVersionError,
    error_for,
)
from moldau.client.results import Results
from moldau.client.topics import Node
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    MetadataRequest,
    MetadataResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

__all__ = ["ClusterOperations"]

_BROKERS, _CONTROLLERS = 1, 2
_METADATA_TOPIC = "__cluster_metadata"
_MOVED = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER})
# The last version of Metadata that returns what one may do with the cluster.
_METADATA_WITH_CLUSTER_OPERATIONS = 10


class ClusterOperations(AdminBase):
    """The cluster, its features, its metadata quorum."""

    async def describe_cluster(
        self,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
        timeout: float | None = None,
    ) -> ClusterDescription:
        """Id, controller and nodes: brokers, or controllers with `bootstrap.controllers`.

        >>> print((await admin.describe_cluster()).nodes)
        """
        controllers = self._driver.cluster.settings.controllers
        if controllers and include_fenced_brokers:
            raise InvalidRequestError(
                "controllers do not return fenced brokers",
                advice="set bootstrap.servers instead",
            )

        async def ask(call: Call) -> ClusterDescription:
            try:
                response: DescribeClusterResponse = await call(
                    DescribeClusterRequest(
                        include_cluster_authorized_operations=include_authorized_operations,
                        endpoint_type=_CONTROLLERS if controllers else _BROKERS,
                        include_fenced_brokers=include_fenced_brokers,
                    )
                )
            except UnsupportedVersionError:
                if controllers or include_fenced_brokers:
                    raise
                return await _describe_by_metadata(call, include_authorized_operations)
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, response.error_message)
            nodes = {
                each.broker_id: Node(
                    each.broker_id, each.host, each.port, each.rack, each.is_fenced
                )
                for each in response.brokers
            }
            return ClusterDescription(
                response.cluster_id,
                nodes.get(response.controller_id),
                tuple(nodes[each] for each in sorted(nodes)),
                operations_of(response.cluster_authorized_operations),
            )

        route: AnyRoute[None] = AnyRoute(of_controllers=True)
        return await self._run_one("DescribeCluster", route, ask, timeout=timeout)

    async def describe_features(
        self, *, node_id: int | None = None, timeout: float | None = None
    ) -> FeatureMetadata:
        """Which features the cluster uses, and which a node supports.

        >>> print((await admin.describe_features()).finalized_features)
        """

        async def ask(call: Call) -> FeatureMetadata:
            response: ApiVersionsResponse = await call(
                ApiVersionsRequest(
                    client_software_name="moldau", client_software_version=__version__
                )
            )
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, "ApiVersions")
            epoch = response.finalized_features_epoch
            return FeatureMetadata(
                {
                    each.name: FinalizedVersionRange(each.min_version_level, each.max_version_level)
                    for each in sorted(response.finalized_features, key=lambda each: each.name)
                },
                None if epoch < 0 else epoch,
                {
                    each.name: SupportedVersionRange(each.min_version, each.max_version)
                    for each in sorted(response.supported_features, key=lambda each: each.name)
                },
            )

        route: BrokerRoute[None] = BrokerRoute(lambda _: node_id, of_controllers=True)
        return await self._run_one("DescribeFeatures", route, ask, timeout=timeout)

    async def update_features(
        self,
        feature_updates: Mapping[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, None]:
        """Finalize levels of features, all or (with newer brokers) none of them.

        >>> await admin.update_features({"transaction.version": FeatureUpdate(2)})
        """
        if not feature_updates or not all(name.strip() for name in feature_updates):
            raise InvalidRequestError("name at least one feature to update")

        async def ask(call: Call, names: Sequence[str]) -> Answer[str, None]:
            request = UpdateFeaturesRequest
            response: UpdateFeaturesResponse = await call(
                request(
                    timeout_ms=call.timeout_ms,
                    feature_updates=[
                        request.FeatureUpdateKey(
                            feature=name,
                            max_version_level=feature_updates[name].max_version_level,
                            upgrade_type=feature_updates[name].upgrade_type,
                        )
                        for name in names
                    ],
                    validate_only=validate_only,
                )
            )
            answer: Answer[str, None] = Answer()
            if response.error_code != ErrorCode.NONE:
                answer.fail_all(names, response.error_code, response.error_message)
                return answer
            # Newer brokers say nothing of each feature when all went well.
            answer.values = dict.fromkeys(() if response.results else names)
            for each in response.results:
                answer.settle(each.feature, each.error_code, each.error_message, None)
            return answer

        return await self._run(
            "UpdateFeatures",
            feature_updates,
            ControllerRoute(of_controllers=True),
            ask,
            timeout=timeout,
            check=check,
        )

    async def describe_metadata_quorum(self, *, timeout: float | None = None) -> QuorumInfo:
        """The controllers' quorum: its leader, voters and observers, and how far each is.

        >>> print((await admin.describe_metadata_quorum()).leader_id)
        """

        async def ask(call: Call) -> QuorumInfo:
            request = DescribeQuorumRequest
            response: DescribeQuorumResponse = await call(
                request(
                    topics=[
                        request.TopicData(
                            topic_name=_METADATA_TOPIC,
                            partitions=[request.PartitionData(partition_index=0)],
                        )
                    ]
                )
            )
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, response.error_message)
            found = [
                partition
                for topic in response.topics
                for partition in topic.partitions
                if topic.topic_name == _METADATA_TOPIC and partition.partition_index == 0
            ]
            if not found:
                raise UnknownServerError("DescribeQuorum: the response does not contain the quorum")
            if found[0].error_code != ErrorCode.NONE:
                raise error_for(found[0].error_code, found[0].error_message)
            return _quorum(found[0], response.nodes)

        route: AnyRoute[None] = AnyRoute(of_controllers=True)
        return await self._run_one(
            "DescribeMetadataQuorum", route, ask, timeout=timeout, retried=_MOVED
        )

    async def add_raft_voter(
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
        >>> await admin.add_raft_voter(4, directory_id, [endpoint])
        """

        async def ask(call: Call) -> None:
            request = AddRaftVoterRequest
            response: AddRaftVoterResponse = await call(
                request(
                    cluster_id=cluster_id,
                    timeout_ms=call.timeout_ms,
                    voter_id=voter_id,
                    voter_directory_id=voter_directory_id,
                    listeners=[
                        request.Listener(name=each.listener, host=each.host, port=each.port)
                        for each in endpoints
                    ],
                )
            )
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, response.error_message)

        route: AnyRoute[None] = AnyRoute(of_controllers=True)
        await self._run_one("AddRaftVoter", route, ask, timeout=timeout)

    async def remove_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: UUID,
        *,
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Take a controller out of the metadata quorum.

        >>> await admin.remove_raft_voter(4, directory_id)
        """

        async def ask(call: Call) -> None:
            response: RemoveRaftVoterResponse = await call(
                RemoveRaftVoterRequest(
                    cluster_id=cluster_id,
                    voter_id=voter_id,
                    voter_directory_id=voter_directory_id,
                )
            )
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, response.error_message)

        route: AnyRoute[None] = AnyRoute(of_controllers=True)
        await self._run_one("RemoveRaftVoter", route, ask, timeout=timeout)

    async def unregister_broker(self, broker_id: int, *, timeout: float | None = None) -> None:
        """Forget a broker that is gone for good.

        >>> await admin.unregister_broker(4)
        """

        async def ask(call: Call) -> None:
            response: UnregisterBrokerResponse = await call(
                UnregisterBrokerRequest(broker_id=broker_id)
            )
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, response.error_message)

        route: AnyRoute[None] = AnyRoute(of_controllers=True)
        await self._run_one("UnregisterBroker", route, ask, timeout=timeout)


async def _describe_by_metadata(call: Call, operations: bool) -> ClusterDescription:
    """As brokers before Kafka 2.8 return it."""
    response: MetadataResponse = await call(
        MetadataRequest(topics=[], include_cluster_authorized_operations=operations),
        max_version=_METADATA_WITH_CLUSTER_OPERATIONS,
    )
    nodes = {
        each.node_id: Node(each.node_id, each.host, each.port, each.rack)
        for each in response.brokers
    }
    return ClusterDescription(
        response.cluster_id or "",
        nodes.get(response.controller_id),
        tuple(nodes[each] for each in sorted(nodes)),
        operations_of(response.cluster_authorized_operations),
    )


def _quorum(
    partition: DescribeQuorumResponse.PartitionData, nodes: list[DescribeQuorumResponse.Node]
) -> QuorumInfo:
    return QuorumInfo(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        tuple(map(_replica, partition.current_voters)),
        tuple(map(_replica, partition.observers)),
        {
            each.node_id: QuorumNode(
                each.node_id,
                tuple(
                    RaftVoterEndpoint(listener.name, listener.host, listener.port)
                    for listener in each.listeners
                ),
            )
            for each in nodes
        },
    )


def _replica(found: DescribeQuorumResponse.ReplicaState) -> ReplicaState:
    fetched, caught_up = found.last_fetch_timestamp, found.last_caught_up_timestamp
    return ReplicaState(
        found.replica_id,
        found.replica_directory_id,
        found.log_end_offset,
        None if fetched < 0 else fetched,
        None if caught_up < 0 else caught_up,
    )
