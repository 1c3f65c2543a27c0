"""Every broker key of Kafka 4.3: type, default, whether it can change at run time, what it allows.

The notation is that of moldau.config.table. `required` and cross-key rules live in checks.py.
"""

from __future__ import annotations

from moldau.broker.config.rules import RULES
from moldau.config.definition import ConfigDef
from moldau.config.table import parse_table

__all__ = ["BROKER_KEYS"]

_TABLE = """\
add.partitions.to.txn.retry.backoff.max.ms           int      100         hr  >=0
add.partitions.to.txn.retry.backoff.ms               int      20          hr  >=1
advertised.listeners                                 list     -           hr  +?
alter.config.policy.class.name                       class    -           lr
alter.log.dirs.replication.quota.window.num          int      11          lr  >=1
alter.log.dirs.replication.quota.window.size.seconds int      1           lr  >=1
authorizer.class.name                                string   ""          lr  nonnull
auto.create.topics.enable                            boolean  true        hr
auto.leader.rebalance.enable                         boolean  true        hr
background.threads                                   int      10          hc  >=1
broker.heartbeat.interval.ms                         int      2000        mr
broker.id                                            int      -1          hr
broker.rack                                          string   -           mr
broker.session.timeout.ms                            int      9000        mr
client.quota.callback.class                          class    -           lr
compression.gzip.level                               int      -1          mc  1..9|-1
compression.lz4.level                                int      9           mc  1..17
compression.type                                     string
    producer hc {uncompressed,zstd,lz4,snappy,gzip,producer}
compression.zstd.level                               int      3           mc  -131072..22
config.providers                                     list     []          lc  *
connection.failed.authentication.delay.ms            int      100         lr  >=0
connections.max.idle.ms                              long     600000      mr
connections.max.reauth.ms                            long     0           mr
controlled.shutdown.enable                           boolean  true        mr
controller.listener.names                            list     !           hr  +
controller.performance.always.log.threshold.ms       long     2000        mri >=0
controller.performance.sample.period.ms              long     60000       mri >=100
controller.quorum.append.linger.ms                   int      25          mr  >=0
controller.quorum.auto.join.enable                   boolean  false       lr
controller.quorum.bootstrap.servers                  list     []          hr  hostports
controller.quorum.election.backoff.max.ms            int      1000        hr  >=0
controller.quorum.election.timeout.ms                int      1000        hr  >=0
controller.quorum.fetch.max.bytes                    int      1048576     lr  >=1
controller.quorum.fetch.snapshot.max.bytes           int      1048576     lr  >=1
controller.quorum.fetch.timeout.ms                   int      2000        hr  >=0
controller.quorum.request.timeout.ms                 int      2000        mr  >=0
controller.quorum.retry.backoff.ms                   int      20          lr  >=0
controller.quorum.voters                             list     []          hr  voters
controller.quota.window.num                          int      11          lr  >=1
controller.quota.window.size.seconds                 int      1           lr  >=1
controller.socket.timeout.ms                         int      30000       mr
cordoned.log.dirs                                    list     []          mb  *?
create.topic.policy.class.name                       class    -           lr
default.replication.factor                           int      1           mr
delegation.token.expiry.check.interval.ms            long     3600000     lr  >=1
delegation.token.expiry.time.ms                      long     86400000    mr  >=1
delegation.token.max.lifetime.ms                     long     604800000   mr  >=1
delegation.token.secret.key                          password -           mr
delete.records.purgatory.purge.interval.requests     int      1           mr
delete.topic.enable                                  boolean  true        hr
early.start.listeners                                list     -           hr  *?
fetch.max.bytes                                      int      57671680    mr  >=1024
fetch.purgatory.purge.interval.requests              int      1000        mr
follower.fetch.last.tiered.offset.enable             boolean  false       mc
group.consumer.assignment.interval.ms                int      1000        mc  >=0
group.consumer.assignors                             list     uniform,range mr  +
group.consumer.heartbeat.interval.ms                 int      5000        mr  >=1
group.consumer.max.assignment.interval.ms            int      15000       mr  >=0
group.consumer.max.heartbeat.interval.ms             int      15000       mr  >=1
group.consumer.max.session.timeout.ms                int      60000       mr  >=1
group.consumer.max.size                              int      2147483647  mr  >=1
group.consumer.migration.policy                      string
    bidirectional mr ~{DISABLED,DOWNGRADE,UPGRADE,BIDIRECTIONAL}
group.consumer.min.assignment.interval.ms            int      0           mr  >=0
group.consumer.min.heartbeat.interval.ms             int      5000        mr  >=1
group.consumer.min.session.timeout.ms                int      45000       mr  >=1
group.consumer.regex.refresh.interval.ms             int      600000      mri >=10000
group.consumer.session.timeout.ms                    int      45000       mr  >=1
group.coordinator.append.linger.ms                   int      -1          mr  >=-1
group.coordinator.background.threads                 int      2           hr  >=1
group.coordinator.cached.buffer.max.bytes            int      1048588     mc  >=524288
group.coordinator.rebalance.protocols                list
    classic,consumer,streams mr +{consumer,classic,share,streams}
group.coordinator.threads                            int      4           hr  >=1
group.initial.rebalance.delay.ms                     int      3000        mr
group.max.session.timeout.ms                         int      1800000     mr
group.max.size                                       int      2147483647  mr  >=1
group.min.session.timeout.ms                         int      6000        mr
group.share.assignment.interval.ms                   int      1000        mc  >=0
group.share.assignors                                list     simple      mr  +
group.share.delivery.count.limit                     int      5           mr  2..10
group.share.heartbeat.interval.ms                    int      5000        mr  >=1
group.share.initialize.retry.interval.ms             int      30000       lri >=1
group.share.max.assignment.interval.ms               int      15000       mr  >=0
group.share.max.delivery.count.limit                 int      10          mr  5..25
group.share.max.heartbeat.interval.ms                int      15000       mr  >=1
group.share.max.partition.max.record.locks           int      4000        mr  2000..10000
group.share.max.record.lock.duration.ms              int      60000       mr  30000..3600000
group.share.max.session.timeout.ms                   int      60000       mr  >=1
group.share.max.share.sessions                       int      2000        mr  >=1
group.share.max.size                                 int      200         mr  1..1000
group.share.min.assignment.interval.ms               int      0           mr  >=0
group.share.min.delivery.count.limit                 int      2           mr  2..5
group.share.min.heartbeat.interval.ms                int      5000        mr  >=1
group.share.min.partition.max.record.locks           int      100         mr  100..2000
group.share.min.record.lock.duration.ms              int      15000       mr  1000..30000
group.share.min.session.timeout.ms                   int      45000       mr  >=1
group.share.partition.max.record.locks               int      2000        mr  100..10000
group.share.persister.class.name                     string
    org.apache.kafka.server.share.persister.DefaultStatePersister mri
group.share.record.lock.duration.ms                  int      30000       mr  1000..3600000
group.share.session.timeout.ms                       int      45000       mr  >=1
group.streams.assignment.interval.ms                 int      1000        mc  >=0
group.streams.heartbeat.interval.ms                  int      5000        mr  >=1
group.streams.initial.rebalance.delay.ms             int      3000        mr  >=0
group.streams.max.assignment.interval.ms             int      15000       mr  >=0
group.streams.max.heartbeat.interval.ms              int      15000       mr  >=1
group.streams.max.session.timeout.ms                 int      60000       mr  >=1
group.streams.max.size                               int      2147483647  mr  >=1
group.streams.max.standby.replicas                   int      2           mr  >=0
group.streams.min.assignment.interval.ms             int      0           mr  >=0
group.streams.min.heartbeat.interval.ms              int      5000        mr  >=1
group.streams.min.session.timeout.ms                 int      45000       mr  >=1
group.streams.num.standby.replicas                   int      0           mr  >=0
group.streams.session.timeout.ms                     int      45000       mr  >=1
initial.broker.registration.timeout.ms               int      60000       mr
inter.broker.listener.name                           string   -           mr
internal.metadata.delete.delay.millis                long     60000       lri
internal.metadata.log.segment.bytes                  int      -           lri
internal.metadata.max.batch.size.in.bytes            int      8388608     lri
kafka.metrics.polling.interval.secs                  int      10          lr  >=1
kafka.metrics.reporters                              list     []          lr  *
leader.imbalance.check.interval.seconds              long     300         hr  >=1
listener.security.protocol.map                       string
    SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT lb
listeners                                            list     PLAINTEXT://:9092 hb  +
log.cleaner.backoff.ms                               long     15000       mc  >=0
log.cleaner.dedupe.buffer.size                       long     134217728   mc
log.cleaner.delete.retention.ms                      long     86400000    mc  >=0
log.cleaner.enable                                   boolean  true        mr
log.cleaner.io.buffer.load.factor                    double   0.9         mc
log.cleaner.io.buffer.size                           int      524288      mc  >=0
log.cleaner.io.max.bytes.per.second                  double   1.7976931348623157e+308 mc
log.cleaner.max.compaction.lag.ms                    long     9223372036854775807 mc  >=1
log.cleaner.min.cleanable.ratio                      double   0.5         mc  0..1
log.cleaner.min.compaction.lag.ms                    long     0           mc  >=0
log.cleaner.threads                                  int      1           mc  >=0
log.cleanup.policy                                   list     delete      mc  *{compact,delete}
log.dir                                              list     /tmp/kafka-logs hr  +
log.dir.failure.timeout.ms                           long     30000       lr  >=1
log.dirs                                             list     -           hr  +?
log.flush.interval.messages                          long     9223372036854775807 hc  >=1
log.flush.interval.ms                                long     -           hc
log.flush.offset.checkpoint.interval.ms              int      60000       hr  >=0
log.flush.scheduler.interval.ms                      long     9223372036854775807 hr
log.flush.start.offset.checkpoint.interval.ms        int      60000       hr  >=0
log.index.interval.bytes                             int      4096        mc  >=0
log.index.size.max.bytes                             int      10485760    mc  >=4
log.initial.task.delay.ms                            long     30000       lri >=0
log.local.retention.bytes                            long     -2          mc  >=-2
log.local.retention.ms                               long     -2          mc  >=-2
log.message.timestamp.after.max.ms                   long     3600000     mc  >=0
log.message.timestamp.before.max.ms                  long     9223372036854775807 mc  >=0
log.message.timestamp.type                           string
    CreateTime mc {CreateTime,LogAppendTime}
log.preallocate                                      boolean  false       mc
log.retention.bytes                                  long     -1          hc
log.retention.check.interval.ms                      long     300000      mr  >=1
log.retention.hours                                  int      168         hr
log.retention.minutes                                int      -           hr
log.retention.ms                                     long     -           hc
log.roll.hours                                       int      168         hr  >=1
log.roll.jitter.hours                                int      0           hr  >=0
log.roll.jitter.ms                                   long     -           hc
log.roll.ms                                          long     -           hc
log.segment.bytes                                    int      1073741824  hc  >=1048576
log.segment.delete.delay.ms                          long     60000       hc  >=0
max.connection.creation.rate                         int      2147483647  mc  >=0
max.connections                                      int      2147483647  mc  >=0
max.connections.per.ip                               int      2147483647  mc  >=0
max.connections.per.ip.overrides                     string   ""          mc
max.incremental.fetch.session.cache.slots            int      1000        mr  >=0
max.request.partition.size.limit                     int      2000        mr  >=1
message.max.bytes                                    int      1048588     hc  >=0
metadata.log.dir                                     string   -           hr
metadata.log.max.record.bytes.between.snapshots      long     20971520    hr  >=1
metadata.log.max.snapshot.interval.ms                long     3600000     hr  >=0
metadata.log.segment.bytes                           int      1073741824  hr  >=8388608
metadata.log.segment.ms                              long     604800000   hr
metadata.max.idle.interval.ms                        int      500         lr  >=0
metadata.max.retention.bytes                         long     104857600   hr
metadata.max.retention.ms                            long     604800000   hr
metric.reporters                                     list
    org.apache.kafka.common.metrics.JmxReporter lc *
metrics.num.samples                                  int      2           lr  >=1
metrics.recording.level                              string   INFO        lr
metrics.sample.window.ms                             long     30000       lr  >=1
min.insync.replicas                                  int      1           hc  >=1
node.id                                              int      !           hr  >=0
num.io.threads                                       int      8           hc  >=1
num.network.threads                                  int      3           hc  >=1
num.partitions                                       int      1           mr  >=1
num.recovery.threads.per.data.dir                    int      2           hc  >=1
num.replica.alter.log.dirs.threads                   int      -           hr
num.replica.fetchers                                 int      1           hc  >=1
offset.metadata.max.bytes                            int      4096        hr
offsets.commit.timeout.ms                            int      5000        hr  >=1
offsets.load.buffer.size                             int      5242880     hr  >=1
offsets.retention.check.interval.ms                  long     600000      hr  >=1
offsets.retention.minutes                            int      10080       hr  >=1
offsets.topic.compression.codec                      int      0           hr
offsets.topic.num.partitions                         int      50          hr  >=1
offsets.topic.replication.factor                     short    3           hr  >=1
offsets.topic.segment.bytes                          int      104857600   hr  >=1
principal.builder.class                              class
    org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder mb
process.roles                                        list     !           hr  +{broker,controller}
producer.id.expiration.check.interval.ms             int      600000      lri >=1
producer.id.expiration.ms                            int      86400000    lc  >=1
producer.purgatory.purge.interval.requests           int      1000        mr
queued.max.request.bytes                             long     -1          mr
queued.max.requests                                  int      500         hr  >=1
quota.window.num                                     int      11          lr  >=1
quota.window.size.seconds                            int      1           lr  >=1
remote.fetch.max.wait.ms                             int      500         mc  >=1
remote.list.offsets.request.timeout.ms               long     30000       mc  >=1
remote.log.index.file.cache.total.size.bytes         long     1073741824  lc  >=1
remote.log.index.file.cache.ttl.ms                   long     900000      lri >=-1
remote.log.manager.copier.thread.pool.size           int      10          mc  >=1
remote.log.manager.copy.max.bytes.per.second         long     9223372036854775807 mc  >=1
remote.log.manager.copy.quota.window.num             int      11          mr  >=1
remote.log.manager.copy.quota.window.size.seconds    int      1           mr  >=1
remote.log.manager.expiration.thread.pool.size       int      10          mc  >=1
remote.log.manager.fetch.max.bytes.per.second        long     9223372036854775807 mc  >=1
remote.log.manager.fetch.quota.window.num            int      11          mr  >=1
remote.log.manager.fetch.quota.window.size.seconds   int      1           mr  >=1
remote.log.manager.follower.thread.pool.size         int      2           mc  >=1
remote.log.manager.task.interval.ms                  long     30000       lr  >=1
remote.log.manager.task.retry.backoff.max.ms         long     30000       lri >=1
remote.log.manager.task.retry.backoff.ms             long     500         lri >=1
remote.log.manager.task.retry.jitter                 double   0.2         lri 0..0.5
remote.log.manager.thread.pool.size                  int      2           mr  >=1
remote.log.metadata.custom.metadata.max.bytes        int      128         lr  >=0
remote.log.metadata.manager.class.name               string
    org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager
    mr nonempty
remote.log.metadata.manager.class.path               string   -           mr
remote.log.metadata.manager.impl.prefix              string   rlmm.config. mr  nonempty
remote.log.metadata.manager.listener.name            string   -           mr  nonempty
remote.log.reader.max.pending.tasks                  int      100         mr  >=1
remote.log.reader.threads                            int      10          mc  >=1
remote.log.storage.manager.class.name                string   -           mr  nonempty
remote.log.storage.manager.class.path                string   -           mr
remote.log.storage.manager.impl.prefix               string   rsm.config. mr  nonempty
remote.log.storage.system.enable                     boolean  false       mr
replica.fetch.backoff.ms                             int      1000        mr  >=0
replica.fetch.max.bytes                              int      1048576     mr  >=0
replica.fetch.min.bytes                              int      1           hr
replica.fetch.response.max.bytes                     int      10485760    mr  >=0
replica.fetch.wait.max.ms                            int      500         hr
replica.high.watermark.checkpoint.interval.ms        long     5000        hr
replica.lag.time.max.ms                              long     30000       hr
replica.selector.class                               string   -           mr
replica.socket.receive.buffer.bytes                  int      65536       hr
replica.socket.timeout.ms                            int      30000       hr
replication.quota.window.num                         int      11          lr  >=1
replication.quota.window.size.seconds                int      1           lr  >=1
request.timeout.ms                                   int      30000       hr
sasl.client.callback.handler.class                   class    -           mr
sasl.enabled.mechanisms                              list     GSSAPI      mb  *
sasl.jaas.config                                     password -           mb
sasl.kerberos.kinit.cmd                              string   /usr/bin/kinit mb
sasl.kerberos.min.time.before.relogin                long     60000       mb
sasl.kerberos.principal.to.local.rules               list     DEFAULT     mb  *
sasl.kerberos.service.name                           string   -           mb
sasl.kerberos.ticket.renew.jitter                    double   0.05        mb
sasl.kerberos.ticket.renew.window.factor             double   0.8         mb
sasl.login.callback.handler.class                    class    -           mr
sasl.login.class                                     class    -           mr
sasl.login.connect.timeout.ms                        int      -           lr
sasl.login.read.timeout.ms                           int      -           lr
sasl.login.refresh.buffer.seconds                    short    300         mb
sasl.login.refresh.min.period.seconds                short    60          mb
sasl.login.refresh.window.factor                     double   0.8         mb
sasl.login.refresh.window.jitter                     double   0.05        mb
sasl.login.retry.backoff.max.ms                      long     10000       lr
sasl.login.retry.backoff.ms                          long     100         lr
sasl.mechanism.controller.protocol                   string   GSSAPI      hr
sasl.mechanism.inter.broker.protocol                 string   GSSAPI      mb
sasl.oauthbearer.assertion.algorithm                 string   RS256       mr  ~{ES256,RS256}
sasl.oauthbearer.assertion.claim.aud                 string   -           mr
sasl.oauthbearer.assertion.claim.exp.seconds         int      300         lr  0..86400
sasl.oauthbearer.assertion.claim.iss                 string   -           mr
sasl.oauthbearer.assertion.claim.jti.include         boolean  false       mr
sasl.oauthbearer.assertion.claim.nbf.seconds         int      60          lr  0..3600
sasl.oauthbearer.assertion.claim.sub                 string   -           mr
sasl.oauthbearer.assertion.file                      string   -           mr
sasl.oauthbearer.assertion.private.key.file          string   -           mr
sasl.oauthbearer.assertion.private.key.passphrase    password -           mr
sasl.oauthbearer.assertion.template.file             string   -           mr
sasl.oauthbearer.client.credentials.client.id        string   -           mr
sasl.oauthbearer.client.credentials.client.secret    password -           mr
sasl.oauthbearer.clock.skew.seconds                  int      30          lr
sasl.oauthbearer.expected.audience                   list     []          hr  *
sasl.oauthbearer.expected.issuer                     string   -           hr
sasl.oauthbearer.jwks.endpoint.refresh.ms            long     3600000     lr
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  long     10000       lr
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms      long     100         lr
sasl.oauthbearer.jwks.endpoint.url                   string   -           mr
sasl.oauthbearer.jwt.retriever.class                 class
    org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever mr
sasl.oauthbearer.jwt.validator.class                 class
    org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator mr
sasl.oauthbearer.scope                               string   -           mr
sasl.oauthbearer.scope.claim.name                    string   scope       lr
sasl.oauthbearer.sub.claim.name                      string   sub         lr
sasl.oauthbearer.token.endpoint.url                  string   -           mr
sasl.server.callback.handler.class                   class    -           mr
sasl.server.max.receive.size                         int      524288      mr
security.inter.broker.protocol                       string
    PLAINTEXT mr {PLAINTEXT,SSL,SASL_PLAINTEXT,SASL_SSL}
security.providers                                   string   -           lr
server.max.startup.time.ms                           long     9223372036854775807 mri >=0
share.coordinator.append.linger.ms                   int      -1          mr  >=-1
share.coordinator.cached.buffer.max.bytes            int      1048588     mc  >=524288
share.coordinator.cold.partition.snapshot.interval.ms int      300000      lri >=1
share.coordinator.load.buffer.size                   int      5242880     hr  >=1
share.coordinator.snapshot.update.records.per.snapshot int      500         mr  0..500
share.coordinator.state.topic.compression.codec      int      0           hr
share.coordinator.state.topic.min.isr                short    2           hr  >=1
share.coordinator.state.topic.num.partitions         int      50          hr  >=1
share.coordinator.state.topic.prune.interval.ms      int      300000      lri >=1
share.coordinator.state.topic.replication.factor     short    3           hr  >=1
share.coordinator.state.topic.segment.bytes          int      104857600   hr  >=1
share.coordinator.threads                            int      1           mr  >=1
share.coordinator.write.timeout.ms                   int      5000        hr  >=1
share.fetch.purgatory.purge.interval.requests        int      1000        mr
socket.connection.setup.timeout.max.ms               long     30000       mr
socket.connection.setup.timeout.ms                   long     10000       mr
socket.listen.backlog.size                           int      50          mr  >=1
socket.receive.buffer.bytes                          int      102400      hr
socket.request.max.bytes                             int      104857600   hr  >=1
socket.send.buffer.bytes                             int      102400      hr
ssl.allow.dn.changes                                 boolean  false       lr
ssl.allow.san.changes                                boolean  false       lr
ssl.cipher.suites                                    list     []          mb  *
ssl.client.auth                                      string
    none mb {required,requested,none}
ssl.enabled.protocols                                list     TLSv1.2,TLSv1.3 mb  *
ssl.endpoint.identification.algorithm                string   https       lb
ssl.engine.factory.class                             class    -           lb
ssl.key.password                                     password -           mb
ssl.keymanager.algorithm                             string   SunX509     mb
ssl.keystore.certificate.chain                       password -           mb
ssl.keystore.key                                     password -           mb
ssl.keystore.location                                string   -           mb
ssl.keystore.password                                password -           mb
ssl.keystore.type                                    string   JKS         mb
ssl.principal.mapping.rules                          string   DEFAULT     lr
ssl.protocol                                         string   TLSv1.3     mb
ssl.provider                                         string   -           mb
ssl.secure.random.implementation                     string   -           lb
ssl.trustmanager.algorithm                           string   PKIX        mb
ssl.truststore.certificates                          password -           mb
ssl.truststore.location                              string   -           mb
ssl.truststore.password                              password -           mb
ssl.truststore.type                                  string   JKS         mb
telemetry.max.bytes                                  int      1048576     lr  >=1
transaction.abort.timed.out.transaction.cleanup.interval.ms int      10000       lr  >=1
transaction.max.timeout.ms                           int      900000      hr  >=1
transaction.partition.verification.enable            boolean  true        lc
transaction.remove.expired.transaction.cleanup.interval.ms int      3600000     lr  >=1
transaction.state.log.load.buffer.size               int      5242880     hr  >=1
transaction.state.log.min.isr                        int      2           hr  >=1
transaction.state.log.num.partitions                 int      50          hr  >=1
transaction.state.log.replication.factor             short    3           hr  >=1
transaction.state.log.segment.bytes                  int      104857600   hr  >=1
transaction.two.phase.commit.enable                  boolean  false       lr
transactional.id.expiration.ms                       int      604800000   hr  >=1
unclean.leader.election.enable                       boolean  false       hc
unclean.leader.election.interval.ms                  long     300000      mri >=1
unstable.api.versions.enable                         boolean  false       hri
unstable.feature.versions.enable                     boolean  false       hri
"""

# Keys of Confluent's broker, described only where they are set.
_CONFLUENT_TABLE = """\
confluent.basic.auth.credentials.source              string   URL         lri ~{URL,USER_INFO}
confluent.basic.auth.user.info                       password -           lri
confluent.bearer.auth.credentials.source             string   -           lri
confluent.bearer.auth.token                          password -           lri
confluent.missing.id.cache.ttl.sec                   long     60          lri >=0
confluent.schema.registry.url                        list     []          lri *
confluent.ssl.cipher.suites                          list     []          lri *
confluent.ssl.enabled.protocols                      list     TLSv1.2,TLSv1.3 lri *
confluent.ssl.endpoint.identification.algorithm      string   https       lri
confluent.ssl.key.password                           password -           lri
confluent.ssl.keystore.certificate.chain             password -           lri
confluent.ssl.keystore.key                           password -           lri
confluent.ssl.keystore.location                      string   -           lri
confluent.ssl.keystore.password                      password -           lri
confluent.ssl.keystore.type                          string   JKS         lri
confluent.ssl.protocol                               string   TLSv1.3     lri
confluent.ssl.truststore.certificates                password -           lri
confluent.ssl.truststore.location                    string   -           lri
confluent.ssl.truststore.password                    password -           lri
confluent.ssl.truststore.type                        string   JKS         lri
"""

BROKER_KEYS = ConfigDef(parse_table(_TABLE + _CONFLUENT_TABLE, RULES))
