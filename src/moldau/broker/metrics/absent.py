"""Apache Kafka's MBeans that a node does not have, and why.

A name here ends at the MBean's type or name, or is an attribute (`#name`). The test that compares
the names of both fails for one that is in neither place.
"""

from __future__ import annotations

from typing import Final

_NO_THREADS: Final = "one event loop does this work: there is no such thread"
_NO_QUEUE: Final = "requests are handled by the loop that receives them: there is no queue"
_NO_CHANNEL: Final = "counters of a Java network selector; peers' requests are in RequestMetrics"
_NO_CONVERSION: Final = "records of older formats are not converted: nothing is counted"
_NO_EVENT_LOOP: Final = "Kafka's coordinators have event queues and threads; here the loop decides"
_NO_RATE: Final = "a rate over Kafka's own window; the total is here, and takers of rates use it"
_AS_REPLICATION: Final = "counted as replication, like all that followers copy"
_NO_THROTTLE_QUEUE: Final = "a client over its quota is muted, not queued"
_NO_MEASURE: Final = "not measured"

ABSENT: Final = {
    # Java and its libraries.
    "kafka:type=kafka.Log4jController": "loggers are changed through configs",
    "kafka.utils:type=Throttler": "a compacting process limits itself",
    "kafka.server:type=kafka-metrics-count": "all metrics are counted in yammer-metrics-count",
    "kafka.server:type=app-info#CommitId": "Kafka's commit",
    "kafka.server:type=app-info#Version": "under version",
    "kafka.server:type=app-info#StartTimeMs": "under start-time-ms",
    "kafka.server:type=app-info#commit-id": "Kafka's commit",
    "kafka.server:type=ControllerServer": "the process is the same: see KafkaServer",
    "kafka.server:type=BrokerTopicMetrics,name=ReassignmentBytesInPerSec": _AS_REPLICATION,
    "kafka.server:type=BrokerTopicMetrics,name=ReassignmentBytesOutPerSec": _AS_REPLICATION,
    # Threads and queues.
    "kafka.network:type=Acceptor": _NO_THREADS,
    "kafka.controller:type=ControllerEventManager,name=AvgIdleRatio": _NO_THREADS,
    "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs": _NO_QUEUE,
    "kafka.controller:type=KafkaController,name=EventQueueOperationsTimedOutCount": _NO_QUEUE,
    "kafka.controller:type=KafkaController,name=IgnoredStaticVoters": "voters are never ignored",
    "kafka.server:type=broker-metadata-metrics#ignored-static-voters": "voters are never ignored",
    "kafka.network:type=RequestMetrics,name=MessageConversionsTimeMs": _NO_CONVERSION,
    "kafka.network:type=RequestMetrics,name=TemporaryMemoryBytes": _NO_CONVERSION,
    "kafka.server:type=BrokerTopicMetrics,name=FetchMessageConversionsPerSec": _NO_CONVERSION,
    "kafka.server:type=BrokerTopicMetrics,name=ProduceMessageConversionsPerSec": _NO_CONVERSION,
    "kafka.server:type=MetadataLoader,name=AvgIdleRatio": _NO_THREADS,
    "kafka.server:type=MetadataLoader,name=HandleLoadSnapshotCount": _NO_MEASURE,
    "kafka.server:type=BrokerMetadataListener": "changes are applied as they are committed",
    "kafka.server:type=ReplicaAlterLogDirsManager": "copies are steps of the loop, not fetchers",
    "kafka.server:type=ReplicaFetcherManager,name=MinFetchRate": _NO_MEASURE,
    "kafka.server:type=AssignmentsManager": "reports of directories are sent in one request",
    "org.apache.kafka.server:type=AssignmentsManager": "the same, under another domain",
    "kafka.server:type=ForwardingManager": _NO_QUEUE,
    "kafka.server:type=AddPartitionsToTxnManager": _NO_MEASURE,
    "kafka.coordinator.transaction:type=TransactionMarkerChannelManager": (
        "markers are sent by the loop as soon as a transaction ends"
    ),
    "kafka.log:type=LogCleaner,name=max-buffer-utilization-percent": _NO_MEASURE,
    "kafka.log:type=LogCleaner,name=max-compaction-delay-secs": _NO_MEASURE,
    # Selectors of Kafka's clients inside the broker.
    **{
        f"kafka.server:type={name}": _NO_CHANNEL
        for name in (
            "AddPartitionsManager-channel-metrics",
            "Persister-channel-metrics",
            "alter-partition-metrics",
            "directory-assignments-metrics",
            "forwarding-metrics",
            "heartbeat-metrics",
            "raft-channel-metrics",
            "registration-metrics",
            "txn-marker-channel-metrics",
        )
    },
    # Of quotas, beyond their clients' rates.
    "kafka.server:type=Produce": _NO_THROTTLE_QUEUE,
    "kafka.server:type=Fetch": _NO_THROTTLE_QUEUE,
    "kafka.server:type=Request": _NO_THROTTLE_QUEUE,
    "kafka.server:type=ControllerMutation": _NO_THROTTLE_QUEUE,
    # Coordinators.
    "kafka.server:type=group-coordinator-metrics": _NO_EVENT_LOOP,
    "kafka.server:type=share-coordinator-metrics": _NO_EVENT_LOOP,
    "kafka.server:type=ShareGroupMetrics": _NO_MEASURE,
    "kafka.server:type=ShareSessionCache,name=ShareSessionEvictionsPerSec": _NO_MEASURE,
    "kafka.server:type=client-metrics": _NO_RATE,
    "kafka.server:type=node-metrics": "supported levels of features are in ApiVersions",
    "kafka.server:type=SnapshotEmitter": _NO_MEASURE,
    # Rates and ratios of the newer library.
    "kafka.server:type=socket-server-metrics": _NO_RATE,
    "kafka.server:type=raft-metrics#number-unknown-voter-connections": (
        "a channel to a voter is kept whether or not its address is known yet"
    ),
    "kafka.server:type=raft-metrics#uncommitted-voter-change": "DescribeQuorum has the voters",
}
