"""What keys are for, a line each: the documentation in DescribeConfigs.

Topic and broker keys share names where they share the meaning.
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
add.partitions.to.txn.retry.backoff.max.ms: Longest wait before a partition is added again.
add.partitions.to.txn.retry.backoff.ms: First wait before a partition is added again.
client.quota.callback.class: Plug-in that decides which quota a client has.
config.providers: Names of providers that fill in values such as ${file:...} when the broker starts.
connection.failed.authentication.delay.ms: How long a connection stays open after its login failed.
controller.quorum.auto.join.enable: Let a controller that is not a voter join the quorum.
controller.quorum.election.backoff.max.ms: Longest wait before the next election after a failed one.
controller.quorum.fetch.max.bytes: Most bytes of the metadata log in one fetch.
controller.quorum.fetch.snapshot.max.bytes: Most bytes of a metadata snapshot in one fetch.
controller.quorum.request.timeout.ms: How long a request between controllers may take.
controller.quorum.retry.backoff.ms: Wait before a failed request between controllers is sent again.
controller.quota.window.num: Number of windows that the rate of controller mutations is taken over.
controller.quota.window.size.seconds: Length of each window for the rate of controller mutations.
controller.socket.timeout.ms: How long a request from the controller to a broker may take.
delegation.token.expiry.check.interval.ms: How often expired delegation tokens are looked for.
delegation.token.expiry.time.ms: How long a delegation token is valid before it must be renewed.
delegation.token.max.lifetime.ms: How long a delegation token can live, however often renewed.
group.consumer.assignment.interval.ms: Shortest time between two assignments of a consumer group.
group.consumer.assignors: Assignors for consumer groups; the first is the default.
group.consumer.max.assignment.interval.ms: Largest assignment interval a consumer group can choose.
group.consumer.max.heartbeat.interval.ms: Largest heartbeat interval a consumer group can choose.
group.consumer.max.session.timeout.ms: Largest session timeout a consumer group can choose.
group.consumer.max.size: Most members a consumer group can have.
group.consumer.migration.policy: Which way groups change between classic and consumer protocol.
group.consumer.min.assignment.interval.ms: Smallest assignment interval a consumer group can choose.
group.consumer.min.heartbeat.interval.ms: Smallest heartbeat interval a consumer group can choose.
group.consumer.min.session.timeout.ms: Smallest session timeout a consumer group can choose.
group.coordinator.rebalance.protocols: Group protocols that are enabled.
group.share.assignment.interval.ms: Shortest time between two assignments of a share group.
group.share.assignors: Assignors that the broker offers to share groups.
group.share.delivery.count.limit: How often a share group gets a record before it is archived.
group.share.heartbeat.interval.ms: How often members of share groups send heartbeats.
group.share.max.assignment.interval.ms: Largest assignment interval a share group can choose.
group.share.max.delivery.count.limit: Largest delivery count limit a share group can choose.
group.share.max.heartbeat.interval.ms: Largest heartbeat interval a share group can choose.
group.share.max.partition.max.record.locks: Most record locks a share group can choose.
group.share.max.record.lock.duration.ms: Longest acquisition lock a share group can choose.
group.share.max.session.timeout.ms: Largest session timeout a share group can choose.
group.share.max.share.sessions: Most share sessions a broker has at a time.
group.share.max.size: Most members a share group can have.
group.share.min.assignment.interval.ms: Smallest assignment interval a share group can choose.
group.share.min.delivery.count.limit: Smallest delivery count limit a share group can choose.
group.share.min.heartbeat.interval.ms: Smallest heartbeat interval a share group can choose.
group.share.min.partition.max.record.locks: Fewest record locks a share group can choose.
group.share.min.record.lock.duration.ms: Shortest acquisition lock a share group can choose.
group.share.min.session.timeout.ms: Smallest session timeout a share group can choose.
group.share.partition.max.record.locks: Most records of a partition in flight in a share group.
group.share.record.lock.duration.ms: How long a member of a share group holds a record.
group.share.session.timeout.ms: Members of share groups silent for this time are removed.
group.streams.assignment.interval.ms: Shortest time between two assignments of a streams group.
group.streams.heartbeat.interval.ms: How often members of streams groups send heartbeats.
group.streams.initial.rebalance.delay.ms: How long a new streams group waits for members.
group.streams.max.assignment.interval.ms: Largest assignment interval a streams group can choose.
group.streams.max.heartbeat.interval.ms: Largest heartbeat interval a streams group can choose.
group.streams.max.session.timeout.ms: Largest session timeout a streams group can choose.
group.streams.max.size: Most members a streams group can have.
group.streams.min.assignment.interval.ms: Smallest assignment interval a streams group can choose.
group.streams.min.heartbeat.interval.ms: Smallest heartbeat interval a streams group can choose.
group.streams.min.session.timeout.ms: Smallest session timeout a streams group can choose.
group.streams.session.timeout.ms: Members of streams groups silent for this time are removed.
initial.broker.registration.timeout.ms: How long a starting broker tries to register.
kafka.metrics.reporters: Plug-ins that report the broker's metrics in the older way.
leader.imbalance.check.interval.seconds: How often the balance of preferred leaders is checked.
log.cleaner.io.buffer.load.factor: How full the cleaner's table of keys may get.
log.cleaner.io.buffer.size: Memory of the cleaner for reading and writing.
log.dir.failure.timeout.ms: How long a broker runs on without reporting a failed log directory.
log.flush.start.offset.checkpoint.interval.ms: How often the start offsets of logs are saved.
max.request.partition.size.limit: Most partitions in one response that describes topics.
metadata.log.max.snapshot.interval.ms: Longest time between two snapshots of the metadata.
metadata.log.segment.bytes: Size at which the metadata log starts a new segment.
metadata.log.segment.ms: Age at which the metadata log starts a new segment.
metadata.max.retention.bytes: Size of metadata log and snapshots above which the oldest are deleted.
metadata.max.retention.ms: Age above which the oldest metadata segments and snapshots are deleted.
metric.reporters: Plug-ins that report the broker's metrics.
offsets.commit.timeout.ms: How long a commit waits until its replicas have it.
offsets.load.buffer.size: Bytes read at a time when a coordinator loads groups.
offsets.retention.check.interval.ms: How often offsets that have expired are looked for.
offsets.topic.compression.codec: Codec of records in __consumer_offsets, by number.
principal.builder.class: Plug-in that says who a connection belongs to.
quota.window.num: Number of windows that the rates of clients are taken over.
quota.window.size.seconds: Length of each window for the rates of clients.
replica.fetch.backoff.ms: Wait before a follower fetches again from a partition with an error.
replica.fetch.response.max.bytes: Most bytes in one response to a follower.
replica.high.watermark.checkpoint.interval.ms: How often high watermarks are saved to disk.
replica.selector.class: Plug-in that chooses the replica a consumer reads from.
replica.socket.timeout.ms: How long a follower waits for the leader's response.
replication.quota.window.num: Number of windows that rates of replication are taken over.
replication.quota.window.size.seconds: Length of each window for rates of replication.
sasl.client.callback.handler.class: Plug-in for logins that this broker makes.
sasl.kerberos.principal.to.local.rules: How Kerberos principals become names of users.
sasl.kerberos.service.name: Name of the brokers' Kerberos service.
sasl.login.callback.handler.class: Plug-in that gets the credentials of a login.
sasl.login.class: Plug-in that does the login itself.
sasl.login.connect.timeout.ms: How long connecting to the OAuth provider may take.
sasl.login.read.timeout.ms: How long reading from the OAuth provider may take.
sasl.login.refresh.buffer.seconds: How long before a token's end its refresh must be done.
sasl.login.refresh.min.period.seconds: Shortest time between two refreshes of a token.
sasl.login.refresh.window.factor: Share of a token's lifetime after which it is refreshed.
sasl.login.refresh.window.jitter: Random part of the time until a token is refreshed.
sasl.login.retry.backoff.max.ms: Longest wait between requests to the OAuth provider.
sasl.login.retry.backoff.ms: First wait before the OAuth provider is asked again.
sasl.mechanism.controller.protocol: SASL mechanism of connections to controllers.
sasl.mechanism.inter.broker.protocol: SASL mechanism of connections between brokers.
sasl.oauthbearer.assertion.algorithm: Algorithm that this broker signs its assertions with.
sasl.oauthbearer.assertion.claim.aud: Audience of an assertion.
sasl.oauthbearer.assertion.claim.exp.seconds: How long an assertion is valid.
sasl.oauthbearer.assertion.claim.iss: Issuer of an assertion.
sasl.oauthbearer.assertion.claim.jti.include: Whether an assertion has an id of its own.
sasl.oauthbearer.assertion.claim.nbf.seconds: How long before its signing an assertion is valid.
sasl.oauthbearer.assertion.claim.sub: Subject of an assertion.
sasl.oauthbearer.assertion.file: File with an assertion that is made by another program.
sasl.oauthbearer.assertion.private.key.file: Private key that assertions are signed with.
sasl.oauthbearer.assertion.private.key.passphrase: Passphrase of that private key.
sasl.oauthbearer.assertion.template.file: File with more headers and claims of assertions.
sasl.oauthbearer.client.credentials.client.id: Client id that this broker gets its own tokens with.
sasl.oauthbearer.client.credentials.client.secret: Secret of that client id.
sasl.oauthbearer.clock.skew.seconds: How far the clock of the OAuth provider may differ.
sasl.oauthbearer.expected.audience: Audiences of tokens that are accepted.
sasl.oauthbearer.expected.issuer: Issuer of tokens that are accepted.
sasl.oauthbearer.jwks.endpoint.refresh.ms: How often the keys of the OAuth provider are read again.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms: Longest wait before its keys are read again.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms: First wait before its keys are read again.
sasl.oauthbearer.jwks.endpoint.url: Where the keys of the OAuth provider are.
sasl.oauthbearer.jwt.retriever.class: Plug-in that gets tokens.
sasl.oauthbearer.jwt.validator.class: Plug-in that checks tokens.
sasl.oauthbearer.scope: Scope that this broker asks for in its own tokens.
sasl.oauthbearer.scope.claim.name: Claim of a token that has its scope.
sasl.oauthbearer.sub.claim.name: Claim of a token that has the user's name.
sasl.oauthbearer.token.endpoint.url: Where the OAuth provider gives tokens.
sasl.server.callback.handler.class: Plug-in that checks logins of clients.
sasl.server.max.receive.size: Largest message of a client while it logs in.
share.coordinator.load.buffer.size: Bytes read at a time when share groups' state is loaded.
share.coordinator.snapshot.update.records.per.snapshot: Updates before a snapshot.
share.coordinator.state.topic.compression.codec: Codec of records in __share_group_state, by number.
share.coordinator.state.topic.min.isr: min.insync.replicas of __share_group_state.
share.coordinator.state.topic.num.partitions: Partitions of __share_group_state.
share.coordinator.state.topic.replication.factor: Replicas of __share_group_state.
share.coordinator.state.topic.segment.bytes: Segment size of __share_group_state.
share.coordinator.write.timeout.ms: How long a write of a share group's state may take.
socket.connection.setup.timeout.max.ms: Longest time for setting up a connection.
socket.connection.setup.timeout.ms: First time limit for setting up a connection.
ssl.allow.dn.changes: Accept a new certificate with another distinguished name without a restart.
ssl.allow.san.changes: Accept a new certificate with other alternative names without a restart.
ssl.cipher.suites: TLS cipher suites that may be used; empty means all that are safe.
ssl.endpoint.identification.algorithm: https checks host names in certificates, empty does not.
ssl.engine.factory.class: Plug-in that makes TLS connections.
ssl.key.password: Password of the private key.
ssl.keystore.certificate.chain: The broker's certificates themselves, as PEM text.
ssl.keystore.key: The broker's private key itself, as PEM text.
ssl.keystore.type: Kind of the file with the broker's key: PEM, PKCS12 or JKS.
ssl.principal.mapping.rules: How names of certificates become names of users.
ssl.protocol: TLS version that is used by default.
ssl.truststore.certificates: Certificates to trust themselves, as PEM text.
ssl.truststore.type: Kind of the file with certificates to trust: PEM, PKCS12 or JKS.
transaction.abort.timed.out.transaction.cleanup.interval.ms: How often they are looked for.
transaction.partition.verification.enable: Check that a transaction has the partition written to.
transaction.remove.expired.transaction.cleanup.interval.ms: How often they are removed.
transaction.state.log.load.buffer.size: Bytes read at a time when a coordinator loads transactions.
transaction.state.log.segment.bytes: Segment size of __transaction_state.
transaction.two.phase.commit.enable: Allow transactions without a timeout, for two-phase commits.
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
consumer.assignment.interval.ms: Shortest time between two assignments of the group.
share.assignment.interval.ms: Shortest time between two assignments of the group.
share.renew.acknowledge.enable: Let members renew the acquisition lock of a record.
streams.assignment.interval.ms: Shortest time between two assignments of the group.
streams.initial.rebalance.delay.ms: How long a new group waits for members before it assigns tasks.
interval.ms: How often clients push their metrics.
match: Which clients push: selector=regex pairs.
metrics: Prefixes of the metrics to push; * is all, empty is none.
"""

DOCUMENTATION: dict[str, str] = dict(line.split(": ", maxsplit=1) for line in _TEXT.splitlines())
