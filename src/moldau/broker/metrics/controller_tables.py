"""The metrics of the controller, the quorum and the coordinators; see `tables.py`."""

from __future__ import annotations

from functools import partial
from typing import Final

from moldau.metrics.names import Kind, Spec, declared

_gauge = partial(declared, Kind.GAUGE)
_counter = partial(declared, Kind.COUNTER)
_meter = partial(declared, Kind.METER)
_histogram = partial(declared, Kind.HISTOGRAM)

_CONTROLLER: Final = "kafka.controller:type=KafkaController,name="
ACTIVE: Final = _gauge(_CONTROLLER + "ActiveControllerCount", "1: this controller is active")
ACTIVE_BROKERS: Final = _gauge(_CONTROLLER + "ActiveBrokerCount", "brokers in the cluster")
FENCED_BROKERS: Final = _gauge(_CONTROLLER + "FencedBrokerCount", "registered but fenced brokers")
SHUTTING_DOWN: Final = _gauge(
    _CONTROLLER + "ControlledShutdownBrokerCount", "brokers in controlled shutdown"
)
BROKER_REGISTRATION: Final = _gauge(
    _CONTROLLER + "BrokerRegistrationState", "10 fenced, 20 shutting down, 30 active", "broker"
)
SINCE_HEARTBEAT: Final = _gauge(
    _CONTROLLER + "TimeSinceLastHeartbeatReceivedMs", "since a broker's heartbeat", "broker"
)
TOPICS: Final = _gauge(_CONTROLLER + "GlobalTopicCount", "topics")
PARTITIONS: Final = _gauge(_CONTROLLER + "GlobalPartitionCount", "partitions")
OFFLINE: Final = _gauge(_CONTROLLER + "OfflinePartitionsCount", "partitions without a leader")
IMBALANCE: Final = _gauge(
    _CONTROLLER + "PreferredReplicaImbalanceCount", "partitions not led by their first replica"
)
METADATA_ERRORS: Final = _counter(_CONTROLLER + "MetadataErrorCount", "failed metadata changes")
APPLIED_OFFSET: Final = _gauge(_CONTROLLER + "LastAppliedRecordOffset", "of the metadata log")
APPLIED_TIMESTAMP: Final = _gauge(_CONTROLLER + "LastAppliedRecordTimestamp", "when it was written")
APPLIED_LAG: Final = _gauge(_CONTROLLER + "LastAppliedRecordLagMs", "age of the last record")
COMMITTED_OFFSET: Final = _gauge(_CONTROLLER + "LastCommittedRecordOffset", "of the metadata log")
NEW_ACTIVE: Final = _counter(
    _CONTROLLER + "NewActiveControllersCount", "changes of the active controller"
)
TIMED_OUT_HEARTBEATS: Final = _counter(
    _CONTROLLER + "TimedOutBrokerHeartbeatCount", "brokers fenced for missing heartbeats"
)
OPERATIONS: Final = _counter(
    _CONTROLLER + "EventQueueOperationsStartedCount", "decisions of the controller"
)
UNCLEAN_ELECTIONS: Final = _meter(
    "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
    "leaders elected from outside the ISR",
)
ELR_ELECTIONS: Final = _meter(
    "kafka.controller:type=ControllerStats,name=ElectionFromEligibleLeaderReplicasPerSec",
    "leaders elected from the eligible leader replicas",
)
_EVENTS: Final = "kafka.controller:type=ControllerEventManager,name="
EVENT_TIME: Final = _histogram(_EVENTS + "EventQueueProcessingTimeMs", "ms to decide")

_RAFT: Final = "kafka.server:type=raft-metrics"


def _attribute(mbean: str, attribute: str, help: str, *tags: str) -> Spec:
    return declared(Kind.GAUGE, mbean, help, *tags, attribute=attribute)


RAFT_STATE: Final = _attribute(_RAFT, "current-state", "leader, follower, candidate, observer ...")
RAFT_LEADER: Final = _attribute(_RAFT, "current-leader", "node id, -1: none")
RAFT_EPOCH: Final = _attribute(_RAFT, "current-epoch", "epoch of the quorum")
RAFT_VOTE: Final = _attribute(_RAFT, "current-vote", "node voted for, -1: none")
RAFT_VOTE_DIRECTORY: Final = _attribute(_RAFT, "current-vote-directory-id", "its directory id")
RAFT_HIGH_WATERMARK: Final = _attribute(_RAFT, "high-watermark", "committed up to")
RAFT_END: Final = _attribute(_RAFT, "log-end-offset", "end of the log")
RAFT_END_EPOCH: Final = _attribute(_RAFT, "log-end-epoch", "epoch of the last record")
RAFT_VOTERS: Final = _attribute(_RAFT, "number-of-voters", "voters")
RAFT_OBSERVERS: Final = _attribute(_RAFT, "number-of-observers", "observers, at the leader")
RAFT_COMMIT: Final = {
    stat: _attribute(_RAFT, f"commit-latency-{stat}", "ms from an append to its commit")
    for stat in ("avg", "max")
}
RAFT_ELECTION: Final = {
    stat: _attribute(_RAFT, f"election-latency-{stat}", "ms without a leader")
    for stat in ("avg", "max")
}
RAFT_APPENDS: Final = _attribute(_RAFT, "append-records-rate", "records appended per second")
RAFT_FETCHES: Final = _attribute(_RAFT, "fetch-records-rate", "records fetched per second")
RAFT_IDLE: Final = _attribute(_RAFT, "poll-idle-ratio-avg", "idle share of the event loop")

_METADATA: Final = "kafka.server:type=broker-metadata-metrics"
METADATA_OFFSET: Final = _attribute(_METADATA, "last-applied-record-offset", "applied up to")
METADATA_TIMESTAMP: Final = _attribute(_METADATA, "last-applied-record-timestamp", "its time")
METADATA_LAG: Final = _attribute(_METADATA, "last-applied-record-lag-ms", "its age")
LOAD_ERRORS: Final = _attribute(_METADATA, "metadata-load-error-count", "failed loads")
APPLY_ERRORS: Final = _attribute(_METADATA, "metadata-apply-error-count", "failed changes")
_LOADER: Final = "kafka.server:type=MetadataLoader,name="
CONTROLLER_ID: Final = _gauge(_LOADER + "CurrentControllerId", "active controller, -1: none known")
METADATA_VERSION: Final = _gauge(_LOADER + "CurrentMetadataVersion", "level of metadata.version")
FINALIZED: Final = _gauge(_LOADER + "FinalizedLevel", "level of a feature", "featureName")

# Coordinators.

_GROUPS: Final = "kafka.coordinator.group:type=GroupMetadataManager,name="
NUM_GROUPS: Final = _gauge(_GROUPS + "NumGroups", "classic groups")
NUM_OFFSETS: Final = _gauge(_GROUPS + "NumOffsets", "committed offsets")
CLASSIC_STATES: Final = {
    state: _gauge(f"{_GROUPS}NumGroups{state}", "classic groups in this state")
    for state in ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
}
_COORDINATOR: Final = "kafka.server:type=group-coordinator-metrics"
GROUP_COUNT: Final = _attribute(_COORDINATOR, "group-count", "groups", "protocol")
GROUP_STATES: Final = {
    kind: _attribute(_COORDINATOR, f"{kind}-group-count", "groups in this state", "state")
    for kind in ("consumer", "share", "streams")
}
REBALANCES: Final = {
    kind: _attribute(_COORDINATOR, f"{kind}-rebalance-count", "rebalances since the start")
    for kind in ("group-completed", "consumer-group", "share-group", "streams-group")
}
COMMITS: Final = _attribute(_COORDINATOR, "offset-commit-count", "offsets that were committed")
NUM_PARTITIONS: Final = {
    kind: _attribute(
        f"kafka.server:type={kind}-coordinator-metrics", "num-partitions", "by state", "state"
    )
    for kind in ("group", "share")
}
#: Percentiles of the newer half of Kafka's metrics, with the share of values that each is about.
STATS: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0}
EVENT_TIMES: Final = {
    (kind, phase, stat): _attribute(
        f"kafka.server:type={kind}-coordinator-metrics", f"event-{phase}-time-ms-{stat}", help
    )
    for kind in ("group", "share")
    for phase, help in (
        ("processing", "ms to decide"),
        ("purgatory", "ms until what was appended is committed"),
    )
    for stat in STATS
}
SHARE_WRITES: Final = {
    name: _attribute("kafka.server:type=share-coordinator-metrics", f"write-{name}", help)
    for name, help in (
        ("latency-avg", "ms to write the state of a share group"),
        ("latency-max", "ms to write the state of a share group"),
        ("rate", "writes per second"),
        ("total", "writes since the start"),
    )
}
LOAD_TIMES: Final = {
    (kind, stat): _attribute(
        f"kafka.server:type={kind}-coordinator-metrics", f"partition-load-time-{stat}",
        "ms to load a partition's state",
    )
    for kind in ("group", "share", "transaction")
    for stat in ("avg", "max")
}  # fmt: skip
TRANSACTIONS: Final = _gauge(
    "moldau.coordinator.transaction:type=TransactionCoordinator,name=TransactionCount",
    "transactional ids by state", "state",
)  # fmt: skip
CLIENT_INSTANCES: Final = _attribute(
    "kafka.server:type=client-metrics", "instance-count", "clients that push metrics"
)
SHARE_SESSIONS: Final = _gauge(
    "kafka.server:type=ShareSessionCache,name=ShareSessionsCount", "share sessions"
)
SHARE_PARTITIONS: Final = _gauge(
    "kafka.server:type=ShareSessionCache,name=SharePartitionsCount", "share partitions"
)
