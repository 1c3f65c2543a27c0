"""What keys are for, a line each: the documentation in DescribeConfigs.

Keys that are rarely set have no line here. Topic and broker keys share names where
they share the meaning.
"""

from __future__ import annotations

__all__ = ["DOCUMENTATION"]

_TEXT = """\
confluent.basic.auth.user.info: USER:PASSWORD for the schema registry of schema validation.
confluent.bearer.auth.token: The token for the schema registry of schema validation.
confluent.ssl.keystore.location: The own certificate for the schema registry of schema validation.
confluent.ssl.truststore.location: Whom to trust as the schema registry of schema validation.
confluent.key.schema.validation: Take only records whose keys name a schema of the topic.
confluent.key.subject.name.strategy: Which subject a key's schema must have.
confluent.missing.id.cache.ttl.sec: How long an id that the registry does not have is refused.
confluent.schema.registry.url: The registries that schema validation asks.
confluent.value.schema.validation: Take only records whose values name a schema of the topic.
confluent.value.subject.name.strategy: Which subject a value's schema must have.
cleanup.policy: What becomes of old segments: delete, compact, both, or (empty) keep all.
compression.gzip.level: Level used when the broker compresses with gzip; -1 is gzip's own default.
compression.lz4.level: Level used when the broker compresses with lz4.
compression.type: Codec records are stored with; producer keeps what the producer chose.
compression.zstd.level: Level used when the broker compresses with zstd.
delete.retention.ms: How long tombstones stay readable in a compacted topic.
file.delete.delay.ms: How long a file waits between its removal from the log and from the disk.
flush.messages: Force written data to disk after so many records.
flush.ms: Force written data to disk after this time.
follower.replication.throttled.replicas: partition:broker pairs whose fetching is throttled, or *.
index.interval.bytes: Approximate number of bytes between two entries of the offset index.
internal.segment.bytes: Segment size without the lower bound, for tests.
leader.replication.throttled.replicas: partition:broker pairs whose serving is throttled, or *.
local.retention.bytes: Size kept on local disk when remote storage is on; -2 means retention.bytes.
local.retention.ms: Time kept on local disk when remote storage is on; -2 means retention.ms.
max.compaction.lag.ms: The longest time a record stays uncompacted.
max.message.bytes: Largest record batch accepted, as stored.
message.timestamp.after.max.ms: How far a record's timestamp may be ahead of the broker's clock.
message.timestamp.before.max.ms: How far a record's timestamp may be behind the broker's clock.
message.timestamp.type: Timestamps are from the producer (CreateTime) or broker (LogAppendTime).
min.cleanable.dirty.ratio: Share of a log that must be uncompacted before the cleaner compacts it.
min.compaction.lag.ms: The shortest time a record stays uncompacted.
min.insync.replicas: Replicas that must have a record before a request with acks=all succeeds.
preallocate: Reserve a segment's full size on disk when it is created.
remote.log.copy.disable: Stop copying this topic to remote storage.
remote.log.delete.on.disable: Delete remote data when remote storage is switched off.
remote.storage.enable: Keep old segments of this topic in remote storage.
retention.bytes: Size to which a partition is reduced, oldest segments first; -1 is no limit.
retention.ms: Age at which a segment is deleted; -1 is never.
segment.bytes: Size at which a new segment is started.
segment.index.bytes: Largest size of a segment's offset index.
segment.jitter.ms: Random time subtracted from segment.ms, so that segments do not all roll at once.
segment.ms: Age at which a new segment is started even if the old one is not full.
unclean.leader.election.enable: Let a replica that lacks records lead if no other is left.
advertised.listeners: Addresses that clients connect to, where they differ from listeners.
alter.config.policy.class.name: Plug-in that may reject configuration changes.
authorizer.class.name: Plug-in that authorizes requests; empty allows everything.
auto.create.topics.enable: Create a topic when a client requests one that does not exist.
auto.leader.rebalance.enable: Periodically move leadership back to preferred replicas.
background.threads: Threads for background work.
broker.heartbeat.interval.ms: Interval of heartbeats from a broker to the controller.
broker.id: Old name of node.id.
broker.rack: Rack of this broker; replicas are spread over racks.
broker.session.timeout.ms: A broker without heartbeats for this time is fenced.
connections.max.idle.ms: Idle connections are closed after this time.
connections.max.reauth.ms: Longest time of a SASL session until it is renewed; 0 is no limit.
controlled.shutdown.enable: Move leadership away before stopping.
controller.listener.names: Names of the listeners that controllers use.
controller.quorum.bootstrap.servers: host:port addresses of the metadata quorum.
controller.quorum.election.timeout.ms: Time without a leader before an election starts.
controller.quorum.fetch.timeout.ms: Time without a fetch response before an election starts.
controller.quorum.voters: id@host:port of every voter of a static metadata quorum.
cordoned.log.dirs: Log directories that get no new partitions; * means all.
create.topic.policy.class.name: Plug-in that may reject new topics.
default.replication.factor: Replication factor of topics that are created without one.
delegation.token.secret.key: Key that signs delegation tokens.
delete.topic.enable: Allow topics to be deleted.
fetch.max.bytes: Largest response to a fetch, in bytes.
follower.replication.throttled.rate: Bytes per second throttled followers may fetch.
group.consumer.heartbeat.interval.ms: Heartbeat interval of members of consumer groups.
group.consumer.session.timeout.ms: Members silent for this time are removed.
group.initial.rebalance.delay.ms: How long a new classic group waits for more members.
group.max.session.timeout.ms: Longest session timeout that a classic group member may request.
group.max.size: Largest number of members of a classic group.
group.min.session.timeout.ms: Shortest session timeout that a classic group member may request.
inter.broker.listener.name: Listener for connections between brokers.
leader.replication.throttled.rate: Bytes per second that leaders send to throttled replicas.
listener.security.protocol.map: Security protocol of each listener name, NAME:PROTOCOL.
listeners: Addresses to listen on, NAME://host:port; an empty host is every interface.
log.cleaner.backoff.ms: Pause of the cleaner when there is nothing to compact.
log.cleaner.dedupe.buffer.size: Memory for finding duplicates, over all cleaner threads.
log.cleaner.delete.retention.ms: Default of delete.retention.ms.
log.cleaner.enable: Run the cleaner that compacts logs.
log.cleaner.io.max.bytes.per.second: Bytes per second the cleaner may read and write in all.
log.cleaner.max.compaction.lag.ms: Default of max.compaction.lag.ms.
log.cleaner.min.cleanable.ratio: Default of min.cleanable.dirty.ratio.
log.cleaner.min.compaction.lag.ms: Default of min.compaction.lag.ms.
log.cleaner.threads: Logs compacted at the same time.
log.cleanup.policy: Default of cleanup.policy.
log.dir: Log directory, used if log.dirs is not set.
log.dirs: Log directories, separated by commas.
log.flush.interval.messages: Default of flush.messages.
log.flush.interval.ms: Default of flush.ms; if not set, log.flush.scheduler.interval.ms applies.
log.flush.offset.checkpoint.interval.ms: Interval at which recovery points are written.
log.flush.scheduler.interval.ms: Interval at which logs are checked for flushing.
log.index.interval.bytes: Default of index.interval.bytes.
log.index.size.max.bytes: Default of segment.index.bytes.
log.local.retention.bytes: Default of local.retention.bytes.
log.local.retention.ms: Default of local.retention.ms.
log.message.timestamp.after.max.ms: Default of message.timestamp.after.max.ms.
log.message.timestamp.before.max.ms: Default of message.timestamp.before.max.ms.
log.message.timestamp.type: Default of message.timestamp.type.
log.preallocate: Default of preallocate.
log.retention.bytes: Default of retention.bytes.
log.retention.check.interval.ms: Interval at which logs are checked for deletion.
log.retention.hours: Default retention in hours, when neither milliseconds nor minutes are set.
log.retention.minutes: Default retention in minutes, when milliseconds are not set.
log.retention.ms: Default of retention.ms; -1 is no limit.
log.roll.hours: Default of segment.ms in hours, when log.roll.ms is not set.
log.roll.jitter.hours: Default of segment.jitter.ms in hours, when log.roll.jitter.ms is not set.
log.roll.jitter.ms: Default of segment.jitter.ms.
log.roll.ms: Default of segment.ms.
log.segment.bytes: Default of segment.bytes.
log.segment.delete.delay.ms: Default of file.delete.delay.ms.
max.connection.creation.rate: Largest number of new connections per second.
max.connections: Largest number of connections at a time.
max.connections.per.ip: Largest number of connections from one address at a time.
max.connections.per.ip.overrides: Exceptions to max.connections.per.ip, host:count.
max.incremental.fetch.session.cache.slots: Largest number of fetch sessions.
message.max.bytes: Default of max.message.bytes.
metadata.log.dir: Log directory of the metadata log; the first of log.dirs if not set.
metadata.log.max.record.bytes.between.snapshots: Metadata bytes before a snapshot is taken.
metadata.max.idle.interval.ms: Interval at which an idle controller writes a no-op record.
node.id: Id of this node, unique in the cluster.
num.io.threads: Request handler threads in Kafka; accepted for compatibility.
num.network.threads: Network threads in Kafka; accepted for compatibility.
num.partitions: Partitions of topics that are created without a number.
num.recovery.threads.per.data.dir: Logs of one log directory that are recovered at the same time.
num.replica.fetchers: Connections that copy from each leader.
offset.metadata.max.bytes: Longest metadata text of a committed offset.
offsets.retention.minutes: How long offsets of an empty group are kept.
offsets.topic.num.partitions: Partitions of __consumer_offsets; not to be changed later.
offsets.topic.replication.factor: Replicas of __consumer_offsets.
offsets.topic.segment.bytes: Segment size of __consumer_offsets.
process.roles: Roles of this node: broker, controller or both.
producer.id.expiration.ms: How long an idle producer's sequence numbers are remembered.
queued.max.requests: Requests that may wait before the network stops reading.
queued.max.request.bytes: Bytes of requests that may wait; -1 is no limit.
replica.alter.log.dirs.io.max.bytes.per.second: Bytes per second for moves between log directories.
replica.fetch.max.bytes: Bytes that a follower requests per partition.
replica.fetch.min.bytes: Bytes a follower waits for.
replica.fetch.wait.max.ms: How long a follower waits for replica.fetch.min.bytes.
replica.lag.time.max.ms: A follower that is behind for this time leaves the ISR.
request.timeout.ms: How long to wait for a response from another node.
sasl.enabled.mechanisms: SASL mechanisms clients may use.
sasl.jaas.config: Credentials of a SASL login.
security.inter.broker.protocol: Security protocol between brokers, if no listener is set for it.
socket.listen.backlog.size: Connections that may wait to be accepted; 4096 unless it is set.
socket.receive.buffer.bytes: Receive buffer of sockets; -1 leaves it to the system.
socket.request.max.bytes: Largest request accepted.
socket.send.buffer.bytes: Send buffer of sockets; -1 leaves it to the system.
ssl.client.auth: Whether clients must present a certificate: required, requested or none.
ssl.enabled.protocols: TLS versions allowed.
ssl.keystore.location: File with the node's certificate and key.
ssl.keystore.password: Password of that file.
ssl.truststore.location: File with the certificates to trust.
ssl.truststore.password: Password of that file.
telemetry.max.bytes: Largest push of client metrics accepted.
transaction.max.timeout.ms: Longest timeout that a transaction may request.
transaction.state.log.min.isr: min.insync.replicas of __transaction_state.
transaction.state.log.num.partitions: Partitions of __transaction_state; not to be changed later.
transaction.state.log.replication.factor: Replicas of __transaction_state.
transactional.id.expiration.ms: How long an unused transactional id is remembered.
consumer.heartbeat.interval.ms: Heartbeat interval of members of this consumer group.
consumer.session.timeout.ms: Members silent for this time are removed from the group.
share.auto.offset.reset: Where a share group starts: latest, earliest or by_duration:<ISO duration>.
share.delivery.count.limit: How often a record is delivered in this share group.
share.heartbeat.interval.ms: Heartbeat interval of members of this share group.
share.isolation.level: Whether this share group reads uncommitted transactions.
share.partition.max.record.locks: Records in flight per partition of this share group.
share.record.lock.duration.ms: How long a member of this share group holds a record.
share.session.timeout.ms: Members silent for this time are removed from the group.
streams.heartbeat.interval.ms: Heartbeat interval of members of this streams group.
streams.num.standby.replicas: Standby copies of each task's state.
streams.session.timeout.ms: Members silent for this time are removed from the group.
interval.ms: How often clients push their metrics.
match: Which clients push: selector=regex pairs.
metrics: Prefixes of the metrics to push; * is all, empty is none.
"""

DOCUMENTATION: dict[str, str] = dict(line.split(": ", maxsplit=1) for line in _TEXT.splitlines())
