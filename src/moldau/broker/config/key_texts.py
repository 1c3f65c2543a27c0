"""What keys are for, a line each, for those who describe a configuration with documentation.

Keys that only experts of one corner set have no line here. Topic and broker keys share names where
they share the meaning.
"""

from __future__ import annotations

__all__ = ["DOCUMENTATION"]

_TEXT = """\
cleanup.policy: What becomes of old segments: delete, compact, both, or (empty) keep all.
compression.gzip.level: Level used when the broker compresses with gzip; -1 is gzip's own default.
compression.lz4.level: Level used when the broker compresses with lz4.
compression.type: Codec records are stored with; producer keeps what the producer chose.
compression.zstd.level: Level used when the broker compresses with zstd.
delete.retention.ms: How long tombstones stay readable in a compacted topic.
file.delete.delay.ms: How long a file waits between its removal from the log and from the disk.
flush.messages: Force written data to disk after so many records.
flush.ms: Force written data to disk after so long.
follower.replication.throttled.replicas: partition:broker pairs whose fetching is throttled, or *.
index.interval.bytes: About how many bytes lie between two entries of the offset index.
internal.segment.bytes: Segment size without the lower bound, for tests.
leader.replication.throttled.replicas: partition:broker pairs whose serving is throttled, or *.
local.retention.bytes: Size kept on local disk when remote storage is on; -2 means retention.bytes.
local.retention.ms: Time kept on local disk when remote storage is on; -2 means retention.ms.
max.compaction.lag.ms: A record is compacted at the latest after so long.
max.message.bytes: Largest record batch accepted, as stored.
message.timestamp.after.max.ms: How far ahead of the broker's clock a record may claim to be.
message.timestamp.before.max.ms: How far behind the broker's clock a record may claim to be.
message.timestamp.type: Who dates records: the producer (CreateTime) or the broker (LogAppendTime).
min.cleanable.dirty.ratio: Share of a log that must be uncompacted before the cleaner takes it up.
min.compaction.lag.ms: A record stays uncompacted at least so long.
min.insync.replicas: Replicas that must have a record before acks=all is answered.
preallocate: Reserve a segment's full size on disk when it is created.
remote.log.copy.disable: Stop copying this topic to remote storage.
remote.log.delete.on.disable: Delete remote data when remote storage is switched off.
remote.storage.enable: Keep old segments of this topic in remote storage.
retention.bytes: Size to which a partition is cut, oldest segments first; -1 is no limit.
retention.ms: Age at which a segment is deleted; -1 is never.
segment.bytes: Size at which a new segment is begun.
segment.index.bytes: Largest size of a segment's offset index.
segment.jitter.ms: Random delay taken off segment.ms, so that segments do not all roll at once.
segment.ms: Age at which a new segment is begun even if the old one is not full.
unclean.leader.election.enable: Let a replica that lacks records lead when no other is left.
advertised.listeners: Addresses clients are told to use, where they differ from listeners.
alter.config.policy.class.name: Plug-in that may refuse configuration changes.
authorizer.class.name: Plug-in that decides who may do what; empty allows everything.
auto.create.topics.enable: Create a topic when a client asks about one that does not exist.
auto.leader.rebalance.enable: Move leadership back to preferred replicas from time to time.
background.threads: Threads for background work.
broker.heartbeat.interval.ms: How often a broker tells the controller that it lives.
broker.id: Old name of node.id.
broker.rack: Where this broker stands; replicas are spread over racks.
broker.session.timeout.ms: A broker silent for so long counts as failed.
connections.max.idle.ms: Idle connections are closed after so long.
connections.max.reauth.ms: How long a SASL session may last until it is renewed; 0 is for ever.
controlled.shutdown.enable: Hand leadership over before stopping.
controller.listener.names: Names of the listeners that controllers use.
controller.quorum.bootstrap.servers: host:port addresses at which the metadata quorum is found.
controller.quorum.election.timeout.ms: Without a leader for so long, a controller stands for one.
controller.quorum.fetch.timeout.ms: Without news from the leader for so long, it counts as lost.
controller.quorum.voters: id@host:port of every voter of a static metadata quorum.
cordoned.log.dirs: Log folders that get no new partitions; * means all.
create.topic.policy.class.name: Plug-in that may refuse new topics.
default.replication.factor: Replicas of topics that are created without a number.
delegation.token.secret.key: Key that signs delegation tokens.
delete.topic.enable: Allow topics to be deleted.
fetch.max.bytes: Most bytes one fetch is answered with.
follower.replication.throttled.rate: Bytes per second throttled followers may fetch.
group.consumer.heartbeat.interval.ms: How often members of consumer groups report.
group.consumer.session.timeout.ms: A member of a consumer group silent for so long is removed.
group.initial.rebalance.delay.ms: How long a new classic group waits for more members.
group.max.session.timeout.ms: Longest session timeout a classic group member may ask for.
group.max.size: Most members of a classic group.
group.min.session.timeout.ms: Shortest session timeout a classic group member may ask for.
inter.broker.listener.name: Listener brokers use among themselves.
leader.replication.throttled.rate: Bytes per second leaders give to throttled replicas.
listener.security.protocol.map: Security protocol of each listener name, NAME:PROTOCOL.
listeners: Addresses to listen on, NAME://host:port; an empty host is every interface.
log.cleaner.backoff.ms: How long the cleaner rests when there is nothing to compact.
log.cleaner.dedupe.buffer.size: Memory for finding duplicates, over all cleaner threads.
log.cleaner.delete.retention.ms: Default of delete.retention.ms.
log.cleaner.enable: Run the cleaner that compacts logs.
log.cleaner.io.max.bytes.per.second: Bytes per second the cleaner may read and write in all.
log.cleaner.max.compaction.lag.ms: Default of max.compaction.lag.ms.
log.cleaner.min.cleanable.ratio: Default of min.cleanable.dirty.ratio.
log.cleaner.min.compaction.lag.ms: Default of min.compaction.lag.ms.
log.cleaner.threads: Logs compacted at the same time.
log.cleanup.policy: Default of cleanup.policy.
log.dir: Folder of the logs, used when log.dirs is not set.
log.dirs: Folders of the logs, separated by commas.
log.flush.interval.messages: Default of flush.messages.
log.flush.interval.ms: Default of flush.ms; unset, log.flush.scheduler.interval.ms counts.
log.flush.offset.checkpoint.interval.ms: How often recovery points are written down.
log.flush.scheduler.interval.ms: How often logs are looked at for flushing.
log.index.interval.bytes: Default of index.interval.bytes.
log.index.size.max.bytes: Default of segment.index.bytes.
log.local.retention.bytes: Default of local.retention.bytes.
log.local.retention.ms: Default of local.retention.ms.
log.message.timestamp.after.max.ms: Default of message.timestamp.after.max.ms.
log.message.timestamp.before.max.ms: Default of message.timestamp.before.max.ms.
log.message.timestamp.type: Default of message.timestamp.type.
log.preallocate: Default of preallocate.
log.retention.bytes: Default of retention.bytes.
log.retention.check.interval.ms: How often logs are looked at for deletion.
log.retention.hours: Default retention in hours, when neither milliseconds nor minutes are set.
log.retention.minutes: Default retention in minutes, when milliseconds are not set.
log.retention.ms: Default of retention.ms; -1 is for ever.
log.roll.hours: Default of segment.ms in hours, when log.roll.ms is not set.
log.roll.jitter.hours: Default of segment.jitter.ms in hours, when log.roll.jitter.ms is not set.
log.roll.jitter.ms: Default of segment.jitter.ms.
log.roll.ms: Default of segment.ms.
log.segment.bytes: Default of segment.bytes.
log.segment.delete.delay.ms: Default of file.delete.delay.ms.
max.connection.creation.rate: Most new connections per second.
max.connections: Most connections at a time.
max.connections.per.ip: Most connections from one address at a time.
max.connections.per.ip.overrides: Exceptions to max.connections.per.ip, host:count.
max.incremental.fetch.session.cache.slots: Fetch sessions remembered at a time.
message.max.bytes: Default of max.message.bytes.
metadata.log.dir: Folder of the metadata log; the first of log.dirs when not set.
metadata.log.max.record.bytes.between.snapshots: Metadata written before a new snapshot is taken.
metadata.max.idle.interval.ms: How often an idle controller writes a record to show it lives.
node.id: Number of this node, different for each in the cluster.
num.io.threads: Request handlers in Kafka; kept for compatibility.
num.network.threads: Network threads in Kafka; kept for compatibility.
num.partitions: Partitions of topics that are created without a number.
num.recovery.threads.per.data.dir: Logs of one folder recovered at the same time.
num.replica.fetchers: Connections that copy from each leader.
offset.metadata.max.bytes: Longest text committed along with an offset.
offsets.retention.minutes: How long offsets of an empty group are kept.
offsets.topic.num.partitions: Partitions of __consumer_offsets; not to be changed later.
offsets.topic.replication.factor: Replicas of __consumer_offsets.
offsets.topic.segment.bytes: Segment size of __consumer_offsets.
process.roles: What this node is: broker, controller or both.
producer.id.expiration.ms: How long an idle producer's sequence numbers are remembered.
queued.max.requests: Requests that may wait before the network stops reading.
queued.max.request.bytes: Bytes of requests that may wait; -1 is no limit.
replica.alter.log.dirs.io.max.bytes.per.second: Bytes per second for moves between log folders.
replica.fetch.max.bytes: Bytes a follower asks for per partition.
replica.fetch.min.bytes: Bytes a follower waits for.
replica.fetch.wait.max.ms: How long a follower waits for replica.fetch.min.bytes.
replica.lag.time.max.ms: A follower behind for so long leaves the in-sync set.
request.timeout.ms: How long to wait for an answer of another node.
sasl.enabled.mechanisms: SASL mechanisms clients may use.
sasl.jaas.config: Credentials of a SASL login.
security.inter.broker.protocol: Security protocol between brokers, if no listener is named for it.
socket.listen.backlog.size: Connections that may wait to be accepted; 4096 unless it is set.
socket.receive.buffer.bytes: Receive buffer of sockets; -1 leaves it to the system.
socket.request.max.bytes: Largest request accepted.
socket.send.buffer.bytes: Send buffer of sockets; -1 leaves it to the system.
ssl.client.auth: Whether clients must show a certificate: required, requested or none.
ssl.enabled.protocols: TLS versions allowed.
ssl.keystore.location: File with the node's certificate and key.
ssl.keystore.password: Password of that file.
ssl.truststore.location: File with the certificates to trust.
ssl.truststore.password: Password of that file.
telemetry.max.bytes: Largest push of client metrics accepted.
transaction.max.timeout.ms: Longest timeout a transaction may ask for.
transaction.state.log.min.isr: min.insync.replicas of __transaction_state.
transaction.state.log.num.partitions: Partitions of __transaction_state; not to be changed later.
transaction.state.log.replication.factor: Replicas of __transaction_state.
transactional.id.expiration.ms: How long an unused transactional id is remembered.
consumer.heartbeat.interval.ms: How often members of this consumer group report.
consumer.session.timeout.ms: A member of this consumer group silent for so long is removed.
share.auto.offset.reset: Where a share group starts: latest, earliest or by_duration:<ISO duration>.
share.delivery.count.limit: How often a record is tried in this share group.
share.heartbeat.interval.ms: How often members of this share group report.
share.isolation.level: Whether this share group sees uncommitted transactions.
share.partition.max.record.locks: Records in flight per partition of this share group.
share.record.lock.duration.ms: How long a member of this share group holds a record.
share.session.timeout.ms: A member of this share group silent for so long is removed.
streams.heartbeat.interval.ms: How often members of this streams group report.
streams.num.standby.replicas: Standby copies of each task's state.
streams.session.timeout.ms: A member of this streams group silent for so long is removed.
interval.ms: How often clients push their metrics.
match: Which clients push: selector=regex pairs.
metrics: Prefixes of the metrics wanted; * is all, empty is none.
"""

DOCUMENTATION: dict[str, str] = dict(line.split(": ", maxsplit=1) for line in _TEXT.splitlines())
