"""Every metric of a broker and a controller: its MBean, kind, meaning and tags, in Kafka's words.

`absent.py` has the MBeans of Apache Kafka that are not here, with the reasons.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Final

from moldau.metrics.names import Kind, Spec, declared

_gauge = partial(declared, Kind.GAUGE)
_counter = partial(declared, Kind.COUNTER)
_meter = partial(declared, Kind.METER)
_histogram = partial(declared, Kind.HISTOGRAM)
_timer = partial(declared, Kind.TIMER)


# What goes in and out.

_TOPIC_METERS: Final = {
    "MessagesInPerSec": ("records appended by producers", "messages"),
    "BytesInPerSec": ("bytes appended by producers", "bytes"),
    "BytesOutPerSec": ("bytes sent to consumers", "bytes"),
    "BytesRejectedPerSec": ("bytes of batches that were refused", "bytes"),
    "TotalProduceRequestsPerSec": ("partitions in Produce requests", "requests"),
    "TotalFetchRequestsPerSec": ("partitions in Fetch responses", "requests"),
    "FailedProduceRequestsPerSec": ("partitions whose Produce failed", "requests"),
    "FailedFetchRequestsPerSec": ("partitions whose Fetch failed", "requests"),
    "TotalShareFetchRequestsPerSec": ("ShareFetch requests", "requests"),
    "FailedShareFetchRequestsPerSec": ("ShareFetch requests that failed", "requests"),
    "TotalShareAcknowledgementRequestsPerSec": ("ShareAcknowledge requests", "requests"),
    "FailedShareAcknowledgementRequestsPerSec": ("ShareAcknowledge that failed", "requests"),
    "InvalidMagicNumberRecordsPerSec": ("batches of a format that is not accepted", "requests"),
    "InvalidMessageCrcRecordsPerSec": ("batches whose checksum is wrong", "requests"),
    "InvalidOffsetOrSequenceRecordsPerSec": ("batches out of sequence", "requests"),
    "NoKeyCompactedTopicRecordsPerSec": ("batches without keys for compacted topics", "requests"),
}  # fmt: skip
_BROKER_METERS: Final = {
    "ReplicationBytesInPerSec": ("bytes copied from leaders", "bytes"),
    "ReplicationBytesOutPerSec": ("bytes sent to followers", "bytes"),
}


def _topic_meter(name: str, help: str, event_type: str, *tags: str) -> Spec:
    return _meter(
        f"kafka.server:type=BrokerTopicMetrics,name={name}", help, *tags, event_type=event_type
    )


#: By name: of all topics, of one topic, of one partition. Kafka has the first two; the last are
#: an MBean of their own, so that sums over topics in dashboards stay right.
ALL_TOPICS: Final = {
    name: _topic_meter(name, *texts) for name, texts in (_TOPIC_METERS | _BROKER_METERS).items()
}
TOPIC: Final = {name: _topic_meter(name, *texts, "topic") for name, texts in _TOPIC_METERS.items()}
PARTITION: Final = {
    name: _meter(
        f"moldau.server:type=PartitionMetrics,name={name}",
        _TOPIC_METERS[name][0],
        "topic",
        "partition",
        event_type=_TOPIC_METERS[name][1],
    )
    for name in ("MessagesInPerSec", "BytesInPerSec", "BytesOutPerSec")
}

# Requests.

_REQUEST_PHASES: Final = {
    "TotalTimeMs": "ms from the request to its response",
    "RequestQueueTimeMs": "ms from receiving a request to beginning it",
    "LocalTimeMs": "ms that this broker works on a request",
    "RemoteTimeMs": "ms that a request waits for others: followers, members, records",
    "ThrottleTimeMs": "ms that a client over its quota is held back",
    "ResponseQueueTimeMs": "ms that a response waits for its turn to be sent",
    "ResponseSendTimeMs": "ms until a client has taken its response",
    "RequestBytes": "bytes of a request",
}
REQUEST: Final = {
    name: _histogram(f"kafka.network:type=RequestMetrics,name={name}", help, "request")
    for name, help in _REQUEST_PHASES.items()
}
REQUESTS: Final = _meter(
    "kafka.network:type=RequestMetrics,name=RequestsPerSec", "requests", "request", "version",
    event_type="requests",
)  # fmt: skip
ERRORS: Final = _meter(
    "kafka.network:type=RequestMetrics,name=ErrorsPerSec",
    "error codes in responses, NONE included", "request", "error", event_type="requests",
)  # fmt: skip

# Replicas and partitions.

_REPLICA: Final = "kafka.server:type=ReplicaManager,name="
LEADER_COUNT: Final = _gauge(_REPLICA + "LeaderCount", "partitions that this broker leads")
PARTITION_COUNT: Final = _gauge(_REPLICA + "PartitionCount", "partitions on this broker")
OFFLINE_REPLICAS: Final = _gauge(_REPLICA + "OfflineReplicaCount", "replicas on failed disks")
UNDER_REPLICATED: Final = _gauge(
    _REPLICA + "UnderReplicatedPartitions", "led partitions with replicas that are not in sync"
)
UNDER_MIN_ISR: Final = _gauge(
    _REPLICA + "UnderMinIsrPartitionCount", "led partitions with fewer than min.insync.replicas"
)
AT_MIN_ISR: Final = _gauge(
    _REPLICA + "AtMinIsrPartitionCount", "led partitions with exactly min.insync.replicas"
)
REASSIGNING: Final = _gauge(_REPLICA + "ReassigningPartitions", "led partitions being reassigned")
PRODUCER_IDS: Final = _gauge(_REPLICA + "ProducerIdCount", "producers that partitions remember")
LATE_TRANSACTIONS: Final = _gauge(
    _REPLICA + "PartitionsWithLateTransactionsCount", "partitions with transactions open too long"
)
ISR_SHRINKS: Final = _meter(_REPLICA + "IsrShrinksPerSec", "replicas that fell out of sync")
ISR_EXPANDS: Final = _meter(_REPLICA + "IsrExpandsPerSec", "replicas that came back in sync")
FAILED_ISR_UPDATES: Final = _meter(
    _REPLICA + "FailedIsrUpdatesPerSec", "ISR changes that the controller refused"
)

_PARTITION: Final = "kafka.cluster:type=Partition,name="


def _partition_gauge(name: str, help: str) -> Spec:
    return _gauge(name, help, "topic", "partition")


P_UNDER_REPLICATED: Final = _partition_gauge(_PARTITION + "UnderReplicated", "1: replicas missing")
P_UNDER_MIN_ISR: Final = _partition_gauge(_PARTITION + "UnderMinIsr", "1: too few in sync")
P_AT_MIN_ISR: Final = _partition_gauge(_PARTITION + "AtMinIsr", "1: exactly the minimum in sync")
P_ISR: Final = _partition_gauge(_PARTITION + "InSyncReplicasCount", "replicas in sync")
P_REPLICAS: Final = _partition_gauge(_PARTITION + "ReplicasCount", "replicas")
P_LSO_LAG: Final = _partition_gauge(
    _PARTITION + "LastStableOffsetLag", "records that wait for open transactions"
)

_FETCHERS: Final = "kafka.server:type=ReplicaFetcherManager,name="
FETCHER_MAX_LAG: Final = _gauge(_FETCHERS + "MaxLag", "records behind, worst partition", "clientId")
FETCHER_FAILED: Final = _gauge(
    _FETCHERS + "FailedPartitionsCount", "partitions that are not copied any more", "clientId"
)
FETCHER_DEAD: Final = _gauge(_FETCHERS + "DeadThreadCount", "fetchers that ended", "clientId")
FETCHER_LAG: Final = _gauge(
    "kafka.server:type=FetcherLagMetrics,name=ConsumerLag", "records behind the leader",
    "clientId", "topic", "partition",
)  # fmt: skip

# Logs.

_LOG: Final = "kafka.log:type=Log,name="
LOG_SIZE: Final = _partition_gauge(_LOG + "Size", "bytes")
LOG_SEGMENTS: Final = _partition_gauge(_LOG + "NumLogSegments", "segments")
LOG_START: Final = _partition_gauge(_LOG + "LogStartOffset", "first offset")
LOG_END: Final = _partition_gauge(_LOG + "LogEndOffset", "offset of the next record")
LOG_RETENTION: Final = _partition_gauge(
    _LOG + "RetentionSizeInPercent", "size in percent of retention.bytes, 0 without a limit"
)
LOG_FLUSH: Final = _timer(
    "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs", "flushes of logs to disk"
)
_LOGS: Final = "kafka.log:type=LogManager,name="
OFFLINE_DIRS: Final = _gauge(_LOGS + "OfflineLogDirectoryCount", "failed log directories")
DIR_OFFLINE: Final = _gauge(_LOGS + "LogDirectoryOffline", "1: it has failed", "logDirectory")
CORDONED_DIRS: Final = _gauge(_LOGS + "CordonedLogDirectoryCount", "cordoned log directories")
DIR_CORDONED: Final = _gauge(_LOGS + "LogDirectoryCordoned", "1: cordoned", "logDirectory")
DIR_FREE: Final = _gauge(
    "moldau.log:type=LogManager,name=LogDirectoryFreeBytes", "free bytes of its disk",
    "logDirectory",
)  # fmt: skip
DIR_TOTAL: Final = _gauge(
    "moldau.log:type=LogManager,name=LogDirectoryTotalBytes", "bytes of its disk", "logDirectory"
)
_CLEANER: Final = "kafka.log:type=LogCleaner,name="
CLEANER_RECOPY: Final = _gauge(_CLEANER + "cleaner-recopy-percent", "kept by the last compaction")
CLEANER_TIME: Final = _gauge(_CLEANER + "max-clean-time-secs", "of the last compaction")
CLEANER_DEAD: Final = _gauge(_CLEANER + "DeadThreadCount", "compacting processes that failed")
_CLEANER_MANAGER: Final = "kafka.log:type=LogCleanerManager,name="
MAX_DIRTY: Final = _gauge(_CLEANER_MANAGER + "max-dirty-percent", "of the dirtiest log")
SINCE_CLEANED: Final = _gauge(_CLEANER_MANAGER + "time-since-last-run-ms", "since a compaction")
UNCLEANABLE_BYTES: Final = _gauge(
    _CLEANER_MANAGER + "uncleanable-bytes", "of logs that cannot be compacted", "logDirectory"
)
UNCLEANABLE: Final = _gauge(
    _CLEANER_MANAGER + "uncleanable-partitions-count", "logs that cannot be compacted",
    "logDirectory",
)  # fmt: skip

# Waiting.

_PURGATORY: Final = "kafka.server:type=DelayedOperationPurgatory,name="
PURGATORY_SIZE: Final = _gauge(_PURGATORY + "PurgatorySize", "waiting requests", "delayedOperation")
PURGATORY_DELAYED: Final = _gauge(
    _PURGATORY + "NumDelayedOperations", "waiting requests", "delayedOperation"
)
PRODUCE_EXPIRES: Final = _meter(
    "kafka.server:type=DelayedProduceMetrics,name=ExpiresPerSec", "Produce requests that timed out"
)
FETCH_EXPIRES: Final = _meter(
    "kafka.server:type=DelayedFetchMetrics,name=ExpiresPerSec", "Fetch requests that timed out",
    "fetcherType",
)  # fmt: skip
_SESSIONS: Final = "kafka.server:type=FetchSessionCache,name="
SESSIONS: Final = _gauge(_SESSIONS + "NumIncrementalFetchSessions", "fetch sessions")
SESSION_PARTITIONS: Final = _gauge(
    _SESSIONS + "NumIncrementalFetchPartitionsCached", "partitions in fetch sessions"
)
SESSION_EVICTIONS: Final = _meter(
    _SESSIONS + "IncrementalFetchSessionEvictionsPerSec", "fetch sessions replaced by others"
)

# The node.

_SERVER: Final = "kafka.server:type=KafkaServer,name="
BROKER_STATE: Final = _gauge(_SERVER + "BrokerState", "3: running")
CLUSTER_ID: Final = _gauge(_SERVER + "ClusterId", "the cluster's id")
DISK_READ: Final = _counter(_SERVER + "linux-disk-read-bytes", "bytes read from disks")
DISK_WRITE: Final = _counter(_SERVER + "linux-disk-write-bytes", "bytes written to disks")
METRICS_COUNT: Final = _gauge(_SERVER + "yammer-metrics-count", "metrics with a name")
APP_VERSION: Final = _gauge("kafka.server:type=app-info", "version", attribute="version")
APP_START: Final = _gauge("kafka.server:type=app-info", "start", attribute="start-time-ms")
HANDLER_IDLE: Final = tuple(
    _meter(f"kafka.server:type=KafkaRequestHandlerPool,name={name}", "idle share of the event loop")
    for name in ("RequestHandlerAvgIdlePercent", "BrokerRequestHandlerAvgIdlePercent")
)
CONTROLLER_IDLE: Final = _meter(
    "kafka.server:type=KafkaRequestHandlerPool,name=ControllerRequestHandlerAvgIdlePercent",
    "idle share of the event loop",
)
NETWORK_IDLE: Final = _gauge(
    "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
    "idle share of the event loop, between 0 and 1",
)
PROCESSOR_IDLE: Final = _gauge(
    "kafka.network:type=Processor,name=IdlePercent", "idle share of the event loop",
    "networkProcessor",
)  # fmt: skip
REQUEST_QUEUE: Final = _gauge(
    "kafka.network:type=RequestChannel,name=RequestQueueSize", "connections whose requests wait"
)
RESPONSE_QUEUE: Final = _gauge(
    "kafka.network:type=RequestChannel,name=ResponseQueueSize", "connections with unsent responses"
)
MEMORY_USED: Final = _gauge(
    "kafka.network:type=SocketServer,name=MemoryPoolUsed", "bytes of requests being received"
)
MEMORY_AVAILABLE: Final = _gauge(
    "kafka.network:type=SocketServer,name=MemoryPoolAvailable", "queued.max.request.bytes left"
)
EXPIRED_CONNECTIONS: Final = _counter(
    "kafka.network:type=SocketServer,name=ExpiredConnectionsKilledCount",
    "connections closed at the end of their login",
)

_SOCKET: Final = "kafka.server:type=socket-server-metrics"


def _socket(attribute: str, help: str, *tags: str, kind: Kind = Kind.GAUGE) -> Spec:
    return declared(kind, _SOCKET, help, *(tags or ("listener", "networkProcessor")),
                    attribute=attribute)  # fmt: skip


CONNECTION_COUNT: Final = _socket("connection-count", "open connections")
CONNECTIONS_CREATED: Final = _socket("connection-creation-total", "connections accepted")
CONNECTIONS_CLOSED: Final = _socket("connection-close-total", "connections closed")
BYTES_RECEIVED: Final = _socket("incoming-byte-total", "bytes received")
BYTES_SENT: Final = _socket("outgoing-byte-total", "bytes sent")
SUCCESSFUL_LOGINS: Final = _socket("successful-authentication-total", "logins")
FAILED_LOGINS: Final = _socket("failed-authentication-total", "failed logins")
EXPIRED_KILLED: Final = _socket("expired-connections-killed-count", "closed: login has ended")
CLIENT_SOFTWARE: Final = _socket(
    "connections", "open connections by client software",
    "clientSoftwareName", "clientSoftwareVersion", "listener", "networkProcessor",
)  # fmt: skip

# Quotas of clients.

#: The attribute of each type of quota that has its rate.
QUOTA_RATES: Final = {"Produce": "byte-rate", "Fetch": "byte-rate", "Request": "request-time"}


@cache
def quota(kind: str, attribute: str, *tags: str) -> Spec:
    """A metric of clients that a quota limits; `tags` are user, client-id or both."""
    help = "what a client with a quota uses" if attribute != "throttle-time" else "ms it waits"
    return _gauge(f"kafka.server:type={kind}", help, *tags, attribute=attribute)
