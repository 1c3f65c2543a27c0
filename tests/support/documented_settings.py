"""The settings that the documentation of connectors lists, by their Java class names."""

from __future__ import annotations

__all__ = ["DOCUMENTED"]

#: A class, and indented its settings; `*name` stands for a list with that name.
_TEXT = """\
*debezium
  tombstones.on.delete column.include.list column.exclude.list skip.messages.without.change
  column.truncate.to.length.chars column.mask.with.length.chars column.mask.hash
  column.propagate.source.type datatype.propagate.source.type message.key.columns max.batch.size
  max.queue.size max.queue.size.in.bytes poll.interval.ms decimal.handling.mode
  time.precision.mode binary.handling.mode schema.name.adjustment.mode
  field.name.adjustment.mode heartbeat.interval.ms heartbeat.action.query topic.heartbeat.prefix
  provide.transaction.metadata topic.transaction topic.naming.strategy topic.delimiter
  topic.cache.size skipped.operations signal.data.collection signal.enabled.channels
  notification.enabled.channels notification.sink.topic.name incremental.snapshot.chunk.size
  incremental.snapshot.watermarking.strategy snapshot.mode snapshot.fetch.size snapshot.delay.ms
  snapshot.lock.timeout.ms snapshot.max.threads snapshot.select.statement.overrides
  snapshot.include.collection.list snapshot.locking.mode snapshot.query.mode
  retriable.restart.connector.wait.ms event.processing.failure.handling.mode errors.max.retries
  custom.metric.tags sourceinfo.struct.maker converters post.processors include.schema.changes
  table.include.list table.exclude.list topic.prefix database.hostname database.port
  database.user database.password read.only streaming.delay.ms use.nongraceful.disconnect
*mysql
  database.server.id database.include.list database.exclude.list connect.timeout.ms
  bigint.unsigned.handling.mode include.query include.schema.comments database.ssl.mode
  database.ssl.keystore database.ssl.keystore.password database.ssl.truststore
  database.ssl.truststore.password gtid.source.includes gtid.source.excludes
  event.deserialization.failure.handling.mode inconsistent.schema.handling.mode
  connect.keep.alive connect.keep.alive.interval.ms min.row.count.to.stream.results
  binlog.buffer.size schema.history.internal schema.history.internal.kafka.topic
  schema.history.internal.kafka.bootstrap.servers
  schema.history.internal.store.only.captured.tables.ddl
  schema.history.internal.store.only.captured.databases.ddl
  schema.history.internal.skip.unparseable.ddl enable.time.adjuster database.connectionTimeZone
  database.initial.statements database.query.timeout.ms database.protocol database.jdbc.driver
  table.ignore.builtin
io.confluent.connect.jdbc.JdbcSourceConnector
  connection.url connection.user connection.password connection.attempts connection.backoff.ms
  table.whitelist table.blacklist catalog.pattern schema.pattern db.timezone dialect.name mode
  incrementing.column.name timestamp.column.name timestamp.initial validate.non.null
  numeric.precision.mapping numeric.mapping query query.suffix query.retry.attempts
  quote.sql.identifiers table.types poll.interval.ms batch.max.rows table.poll.interval.ms
  topic.prefix timestamp.delay.interval.ms timestamp.granularity transaction.isolation.mode
  table.monitoring.startup.polling.limit.ms date.calendar.system timestamp.fields.list
  ssl.truststore.location ssl.truststore.password ssl.keystore.location ssl.keystore.password
  trim.sensitive.log
io.aiven.connect.jdbc.JdbcSourceConnector
  connection.url connection.user connection.password connection.attempts connection.backoff.ms
  table.whitelist table.blacklist catalog.pattern schema.pattern db.timezone dialect.name mode
  incrementing.column.name timestamp.column.name timestamp.initial.ms incrementing.initial
  validate.non.null numeric.precision.mapping numeric.mapping query sql.quote.identifiers
  table.types poll.interval.ms batch.max.rows table.poll.interval.ms topic.prefix
  timestamp.delay.interval.ms table.names.qualify
io.confluent.connect.jdbc.JdbcSinkConnector
  connection.url connection.user connection.password connection.attempts connection.backoff.ms
  dialect.name insert.mode batch.size delete.enabled table.types table.name.format pk.mode
  pk.fields fields.whitelist db.timezone date.timezone timestamp.fields.list
  timestamp.precision.mode auto.create auto.evolve quote.sql.identifiers max.retries
  retry.backoff.ms mssql.use.merge.holdlock trim.sensitive.log replace.null.with.default
  date.calendar.system
io.aiven.connect.jdbc.JdbcSinkConnector
  connection.url connection.user connection.password connection.attempts connection.backoff.ms
  dialect.name insert.mode batch.size delete.enabled table.name.format table.name.normalize
  topics.to.tables.mapping pk.mode pk.fields fields.whitelist db.timezone auto.create
  auto.evolve sql.quote.identifiers max.retries retry.backoff.ms
io.debezium.connector.jdbc.JdbcSinkConnector
  connection.provider connection.url connection.username connection.password
  connection.pool.min_size connection.pool.max_size connection.pool.acquire_increment
  connection.pool.timeout connection.restart.on.errors connection.restart.max.retries
  connection.restart.wait.retry.delay.ms use.time.zone database.time_zone delete.enabled
  truncate.enabled insert.mode primary.key.mode primary.key.fields quote.identifiers
  schema.evolution collection.name.format table.name.format collection.naming.strategy
  table.naming.strategy column.naming.strategy dialect.postgres.postgis.schema
  dialect.sqlserver.identity.insert batch.size use.reduction.buffer field.include.list
  field.exclude.list flush.max.retries flush.retry.delay.ms flush.failure.retries
  flush.failure.retry.wait.ms hibernate.dialect
io.confluent.connect.s3.S3SinkConnector
  s3.bucket.name s3.region s3.part.size s3.credentials.provider.class s3.ssea.name
  s3.sse.customer.key s3.sse.kms.key.id s3.acl.canned s3.wan.mode s3.compression.type
  s3.compression.level s3.part.retries s3.retry.backoff.ms s3.proxy.url s3.proxy.user
  s3.proxy.password s3.http.send.expect.continue s3.path.style.access.enabled s3.object.tagging
  s3.object.tagging.key.value.pairs s3.object.behavior.on.tagging.error s3.elastic.buffer.enable
  s3.elastic.buffer.init.capacity s3.schema.partition.affix.type aws.access.key.id
  aws.secret.access.key format.class flush.size rotate.interval.ms rotate.schedule.interval.ms
  schema.cache.size enhanced.avro.schema.support connect.meta.data shutdown.timeout.ms
  filename.offset.zero.pad.width retry.backoff.ms behavior.on.null.values store.kafka.keys
  store.kafka.headers keys.format.class headers.format.class tombstone.encoded.partition
  format.bytearray.extension format.bytearray.separator avro.codec parquet.codec
  allow.optional.map.keys schema.compatibility schemas.enable storage.class topics.dir store.url
  directory.delim file.delim partitioner.class partition.field.name partition.duration.ms
  path.format locale timezone timestamp.extractor timestamp.field partitioner.max.open.files
  send.digest decimal.format json.decimal.format s3.delete.markers
io.confluent.connect.s3.source.S3SourceConnector
  s3.bucket.name s3.region s3.credentials.provider.class s3.sse.customer.key s3.proxy.url
  s3.proxy.user s3.proxy.password s3.wan.mode s3.part.retries s3.retry.backoff.ms
  s3.http.send.expect.continue s3.path.style.access.enabled s3.compression.type
  aws.access.key.id aws.secret.access.key s3.poll.interval.ms mode format.class
  record.batch.max.size topics.dir directory.delim file.delim store.url behavior.on.error
  folders topic.regex.list partitioner.class partition.field.name path.format locale timezone
  timestamp.field task.batch.size file.discovery.starting.timestamp format.bytearray.extensions
  format.bytearray.separator format.json.schema.enable schema.cache.size topic.prefix
  poll.interval.ms max.partition.tasks
io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector
  aws.access.key.id aws.secret.access.key aws.credentials.provider aws.s3.bucket.name
  aws.s3.endpoint aws.s3.region aws.s3.prefix aws.s3.part.size.bytes aws.s3.sse.algorithm
  aws.s3.backoff.delay.ms aws.s3.backoff.max.delay.ms aws.s3.backoff.max.retries
  aws.sts.role.arn aws.sts.role.external.id aws.sts.role.session.name
  aws.sts.role.session.duration aws.sts.config.endpoint format.output.fields format.output.type
  format.output.envelope format.output.fields.value.encoding file.name.template file.name.prefix
  file.compression.type file.max.records file.name.timestamp.timezone file.name.timestamp.source
  kafka.retry.backoff.ms
io.confluent.connect.hdfs3.Hdfs3SinkConnector
  hdfs.url hadoop.conf.dir hadoop.home hdfs.authentication.kerberos connect.hdfs.principal
  connect.hdfs.keytab hdfs.namenode.principal kerberos.ticket.renew.period.ms logs.dir
  topics.dir hive.integration hive.metastore.uris hive.conf.dir hive.home hive.database
  hive.table.name store.url format.class flush.size rotate.interval.ms
  rotate.schedule.interval.ms schema.cache.size retry.backoff.ms shutdown.timeout.ms
  filename.offset.zero.pad.width schema.compatibility partitioner.class partition.field.name
  partition.duration.ms path.format locale timezone timestamp.extractor timestamp.field
  avro.codec hdfs.compression.type connect.meta.data enhanced.avro.schema.support storage.class
  directory.delim file.delim null.values behavior.on.null.values
io.confluent.connect.elasticsearch.ElasticsearchSinkConnector
  connection.url connection.username connection.password batch.size bulk.size.bytes
  max.in.flight.requests max.buffered.records linger.ms flush.timeout.ms flush.synchronously
  max.retries retry.backoff.ms connection.compression max.connection.idle.time.ms
  connection.timeout.ms read.timeout.ms key.ignore schema.ignore compact.map.entries
  ignore.key.topics ignore.schema.topics topic.key.ignore topic.schema.ignore
  drop.invalid.message behavior.on.null.values behavior.on.malformed.documents write.method
  type.name log.sensitive.data external.resource.usage topic.to.external.resource.mapping
  use.autogenerated.ids data.stream.dataset data.stream.type data.stream.timestamp.field
  data.stream.namespace external.version.header proxy.host proxy.port proxy.username
  proxy.password elastic.security.protocol elastic.https.ssl.keystore.location
  elastic.https.ssl.keystore.password elastic.https.ssl.key.password
  elastic.https.ssl.keystore.type elastic.https.ssl.truststore.location
  elastic.https.ssl.truststore.password elastic.https.ssl.truststore.type
  kerberos.user.principal kerberos.keytab.path auto.create.indices.at.start topic.index.map
io.aiven.kafka.connect.opensearch.OpensearchSinkConnector
  connection.url connection.username connection.password batch.size max.in.flight.requests
  max.buffered.records linger.ms flush.timeout.ms max.retries retry.backoff.ms
  connection.timeout.ms read.timeout.ms key.ignore key.ignore.id.strategy topic.key.ignore
  schema.ignore topic.schema.ignore compact.map.entries drop.invalid.message
  behavior.on.null.values behavior.on.malformed.documents behavior.on.version.conflict
  index.write.method topic.index.map routing.enabled routing.key data.stream.enabled
  data.stream.name.template data.stream.timestamp.field disable.hostname.verification
io.confluent.connect.http.HttpSinkConnector
  http.api.url request.method headers header.separator behavior.on.null.values behavior.on.error
  request.body.format batch.key.pattern batch.max.size batch.prefix batch.suffix batch.separator
  batch.json.as.array regex.patterns regex.replacements regex.separator max.retries
  retry.backoff.ms retry.on.status.codes http.connect.timeout.ms http.request.timeout.ms
  http.proxy.host http.proxy.port http.proxy.user http.proxy.password auth.type connection.user
  connection.password oauth2.token.url oauth2.client.id oauth2.client.secret
  oauth2.client.auth.mode oauth2.client.scope oauth2.client.headers oauth2.token.property
  https.ssl.truststore.location https.ssl.truststore.password https.ssl.keystore.location
  https.ssl.keystore.password https.ssl.key.password https.ssl.protocol
  https.ssl.enabled.protocols reporter.bootstrap.servers reporter.result.topic.name
  reporter.result.topic.replication.factor reporter.result.topic.partitions
  reporter.error.topic.name reporter.error.topic.replication.factor
  reporter.error.topic.partitions report.errors.as confluent.topic.bootstrap.servers
  confluent.topic.replication.factor confluent.license
io.aiven.kafka.connect.http.HttpSinkConnector
  http.url http.authorization.type http.headers.authorization http.headers.content.type
  http.headers.additional oauth2.access.token.url oauth2.client.id oauth2.client.secret
  oauth2.client.authorization.mode oauth2.client.scope oauth2.response.token.property
  batching.enabled batch.max.size batch.prefix batch.suffix batch.separator
  kafka.retry.backoff.ms max.retries retry.backoff.ms http.timeout http.proxy.host
  http.proxy.port http.ssl.trust.all.certs
com.github.castorm.kafka.connect.http.HttpSourceConnector
  http.timer http.timer.interval.millis http.timer.catchup.interval.millis http.client
  http.client.connection.timeout.millis http.client.read.timeout.millis
  http.client.connection.ttl.millis http.client.proxy.host http.client.proxy.port http.auth
  http.auth.type http.auth.user http.auth.password http.request.factory http.request.url
  http.request.method http.request.headers http.request.params http.request.body
  http.request.template.factory http.response.parser http.response.policy
  http.response.policy.codes.process http.response.policy.codes.skip http.response.list.pointer
  http.response.record.pointer http.response.record.key.pointer
  http.response.record.offset.pointer http.response.record.timestamp.parser
  http.record.filter.factory http.record.mapper kafka.topic http.offset.initial
io.confluent.connect.mqtt.MqttSourceConnector
  mqtt.server.uri mqtt.topics kafka.topic mqtt.qos mqtt.username mqtt.password
  mqtt.clean.session.enabled mqtt.connect.timeout.seconds mqtt.keepalive.interval.seconds
  mqtt.ssl.trust.store.path mqtt.ssl.trust.store.password mqtt.ssl.key.store.path
  mqtt.ssl.key.store.password mqtt.ssl.key.password records.buffer.queue.size
  records.buffer.queue.max.batch.size records.buffer.queue.empty.timeout max.retry.time.ms
  confluent.topic.bootstrap.servers confluent.topic.replication.factor confluent.license
io.confluent.connect.mqtt.MqttSinkConnector
  mqtt.server.uri mqtt.qos mqtt.retained.enabled mqtt.username mqtt.password
  mqtt.clean.session.enabled mqtt.connect.timeout.seconds mqtt.keepalive.interval.seconds
  mqtt.ssl.trust.store.path mqtt.ssl.trust.store.password mqtt.ssl.key.store.path
  mqtt.ssl.key.store.password mqtt.ssl.key.password max.retry.time.ms
  confluent.topic.bootstrap.servers confluent.topic.replication.factor confluent.license
com.redis.kafka.connect.RedisSinkConnector
  redis.uri redis.host redis.port redis.cluster.enabled redis.username redis.password redis.tls
  redis.insecure redis.key.file redis.key.cert redis.key.password redis.cacert redis.timeout
  redis.pool redis.command redis.type redis.keyspace redis.separator redis.key redis.multiexec
  redis.wait.replicas redis.wait.timeout redis.charset
com.redis.kafka.connect.RedisStreamSourceConnector
  redis.uri redis.host redis.port redis.cluster.enabled redis.username redis.password redis.tls
  redis.insecure redis.key.file redis.key.cert redis.key.password redis.cacert redis.timeout
  redis.pool redis.stream.name redis.stream.offset redis.stream.delivery redis.stream.count
  redis.stream.block redis.stream.consumer.group redis.stream.consumer.name topic
com.github.jcustenborder.kafka.connect.redis.RedisSinkConnector
  redis.hosts redis.client.mode redis.database redis.password redis.operation.timeout.ms
  redis.ssl.enabled redis.ssl.provider redis.ssl.keystore.path redis.ssl.keystore.password
  redis.ssl.truststore.path redis.ssl.truststore.password redis.auto.reconnect.enabled
  redis.request.queue.size redis.socket.connect.timeout.ms redis.socket.keep.alive.enabled
  redis.socket.tcp.no.delay.enabled redis.connection.attempts redis.connection.retry.delay.ms
com.mongodb.kafka.connect.MongoSinkConnector
  connection.uri server.api.version database collection namespace.mapper
  namespace.mapper.key.database.field namespace.mapper.key.collection.field
  namespace.mapper.value.database.field namespace.mapper.value.collection.field
  namespace.mapper.error.if.invalid change.data.capture.handler document.id.strategy
  document.id.strategy.overwrite.existing document.id.strategy.partial.value.projection.list
  document.id.strategy.partial.value.projection.type
  document.id.strategy.partial.key.projection.list
  document.id.strategy.partial.key.projection.type document.id.strategy.uuid.format
  delete.on.null.values writemodel.strategy delete.writemodel.strategy max.batch.size
  bulk.write.ordered rate.limiting.timeout rate.limiting.every.n post.processor.chain
  field.renamer.mapping field.renamer.regexp key.projection.list key.projection.type
  value.projection.list value.projection.type mongo.errors.tolerance mongo.errors.log.enable
  timeseries.timefield timeseries.timefield.auto.convert timeseries.metafield
  timeseries.expire.after.seconds timeseries.granularity
com.mongodb.kafka.connect.MongoSourceConnector
  connection.uri server.api.version database collection pipeline batch.size
  publish.full.document.only publish.full.document.only.tombstone.on.delete
  change.stream.full.document change.stream.full.document.before.change
  change.stream.show.expanded.events collation topic.prefix topic.suffix topic.separator
  topic.namespace.map topic.mapper poll.max.batch.size poll.await.time.ms startup.mode
  startup.mode.timestamp.start.at.operation.time startup.mode.copy.existing.max.threads
  startup.mode.copy.existing.queue.size startup.mode.copy.existing.pipeline
  startup.mode.copy.existing.namespace.regex startup.mode.copy.existing.allow.disk.use
  copy.existing output.format.key output.format.value output.json.formatter output.schema.key
  output.schema.value output.schema.infer.value mongo.errors.tolerance mongo.errors.log.enable
  mongo.errors.deadletterqueue.topic.name heartbeat.interval.ms heartbeat.topic.name
  offset.partition.name
io.confluent.connect.cassandra.CassandraSinkConnector
  cassandra.contact.points cassandra.port cassandra.local.datacenter cassandra.username
  cassandra.password cassandra.security.enabled cassandra.keyspace
  cassandra.keyspace.create.enabled cassandra.keyspace.create.replication.factor cassandra.table
  cassandra.table.manage.enabled cassandra.table.create.caching
  cassandra.table.create.compression.enabled cassandra.table.create.compression.algorithm
  cassandra.write.mode cassandra.deletes.enabled cassandra.ttl cassandra.consistency.level
  cassandra.execute.timeout.ms cassandra.compression cassandra.ssl.enabled
  cassandra.ssl.provider cassandra.ssl.truststore.path cassandra.ssl.truststore.password
  cassandra.ssl.keystore.path cassandra.ssl.keystore.password
  cassandra.offset.storage.table.enable cassandra.offset.storage.table cassandra.max.batch.size
  cassandra.load.balancing.policy
com.datastax.oss.kafka.sink.CassandraSinkConnector
  contactPoints port loadBalancing.localDc auth.provider auth.username auth.password
  auth.gssapi.keyTab auth.gssapi.principal auth.gssapi.service ssl.provider ssl.cipherSuites
  ssl.hostnameValidation ssl.keystore.path ssl.keystore.password ssl.truststore.path
  ssl.truststore.password ssl.openssl.keyCertChain ssl.openssl.privateKey
  cloud.secureConnectBundle ignoreErrors maxConcurrentRequests maxNumberOfRecordsInBatch
  queryExecutionTimeout connectionPoolLocalSize jmx compression consistencyLevel
  topic.TOPIC.KEYSPACE.TABLE.mapping topic.TOPIC.KEYSPACE.TABLE.ttl
  topic.TOPIC.KEYSPACE.TABLE.ttlTimeUnit topic.TOPIC.KEYSPACE.TABLE.timestampTimeUnit
  topic.TOPIC.KEYSPACE.TABLE.nullToUnset topic.TOPIC.KEYSPACE.TABLE.deletesEnabled
  topic.TOPIC.KEYSPACE.TABLE.consistencyLevel topic.TOPIC.KEYSPACE.TABLE.query
  topic.TOPIC.codec.locale topic.TOPIC.codec.timeZone topic.TOPIC.codec.timestamp
  topic.TOPIC.codec.date topic.TOPIC.codec.time topic.TOPIC.codec.unit
org.neo4j.connectors.kafka.sink.Neo4jConnector
  neo4j.uri neo4j.database neo4j.authentication.type neo4j.authentication.basic.username
  neo4j.authentication.basic.password neo4j.authentication.basic.realm
  neo4j.authentication.kerberos.ticket neo4j.authentication.bearer.token
  neo4j.authentication.custom.scheme neo4j.authentication.custom.principal
  neo4j.authentication.custom.credentials neo4j.authentication.custom.realm neo4j.batch-size
  neo4j.batch-timeout neo4j.connection-timeout neo4j.max-retry-time
  neo4j.max-connection-pool-size neo4j.pool.max-connection-pool-size
  neo4j.pool.connection-acquisition-timeout neo4j.pool.idle-time-before-connection-test
  neo4j.pool.max-connection-lifetime neo4j.security.encrypted
  neo4j.security.hostname-verification-enabled neo4j.security.trust-strategy
  neo4j.security.cert-files neo4j.cypher.topic.TOPIC neo4j.pattern.topic.TOPIC
  neo4j.cdc.source-id.topics neo4j.cdc.schema.topics neo4j.cud.topics
  neo4j.cypher.bind-timestamp-as neo4j.cypher.bind-header-as neo4j.cypher.bind-key-as
  neo4j.cypher.bind-value-as neo4j.cypher.bind-value-as-event neo4j.pattern.bind-timestamp-as
  neo4j.pattern.bind-header-as neo4j.pattern.bind-key-as neo4j.pattern.bind-value-as
  neo4j.pattern.merge-node-properties neo4j.pattern.merge-relationship-properties
io.confluent.influxdb.InfluxDBSinkConnector
  influxdb.url influxdb.db influxdb.username influxdb.password influxdb.gzip.enable
  influxdb.loglevel influxdb.consistency.level influxdb.timeunit measurement.name.format
  event.time.fieldname tags max.retries retry.backoff.ms batch.size influxdb.retention.policy
io.confluent.influxdb.source.InfluxdbSourceConnector
  influxdb.url influxdb.db influxdb.username influxdb.password mode query topic.prefix topic.mapper
  poll.interval.ms batch.size incrementing.column.name timestamp.delay.interval.ms
  influxdb.measurement.whitelist influxdb.measurement.blacklist measurement.poll.interval.ms
  influxdb.loglevel
com.splunk.kafka.connect.SplunkSinkConnector
  splunk.hec.uri splunk.hec.token splunk.hec.raw splunk.hec.raw.line.breaker
  splunk.hec.json.event.enrichment splunk.hec.ack.enabled splunk.hec.ack.poll.interval
  splunk.hec.ack.poll.threads splunk.hec.event.timeout splunk.hec.ssl.validate.certs
  splunk.hec.ssl.trust.store.path splunk.hec.ssl.trust.store.password
  splunk.hec.ssl.trust.store.type splunk.hec.http.keepalive
  splunk.hec.max.http.connection.per.channel splunk.hec.total.channels splunk.hec.max.batch.size
  splunk.hec.max.outstanding.events splunk.hec.max.retries splunk.hec.backoff.threshhold.seconds
  splunk.hec.socket.timeout splunk.hec.threads splunk.hec.track.data
  splunk.hec.use.record.timestamp splunk.hec.lb.poll.interval splunk.hec.json.event.formatted
  splunk.hec.enable.compression splunk.hec.concurrent.queue.capacity splunk.indexes
  splunk.sources splunk.sourcetypes splunk.header.support splunk.header.custom
  splunk.header.index splunk.header.source splunk.header.sourcetype splunk.header.host
  splunk.flush.window splunk.hec.auto.extract.timestamp splunk.validation.disable
  enable.timestamp.extraction timestamp.regex timestamp.format timestamp.timezone
io.confluent.connect.syslog.SyslogSourceConnector
  syslog.listener syslog.port syslog.host syslog.listen.address topic syslog.queue.max.size
  syslog.queue.batch.size syslog.reverse.dns.remote.ip syslog.reverse.dns.cache.ms
  syslog.ssl.cert.chain.path syslog.ssl.key.path syslog.ssl.key.password
  syslog.ssl.self.signed.certificate.enable syslog.ssl.provider syslog.max.connections
  confluent.topic.bootstrap.servers confluent.topic.replication.factor confluent.license
com.github.jcustenborder.kafka.connect.spooldir.SpoolDirCsvSourceConnector
  input.path input.file.pattern finished.path error.path topic topic.prefix cleanup.policy
  cleanup.policy.maintain.relative.path halt.on.error file.minimum.age.ms empty.poll.wait.ms
  batch.size processing.file.extension file.buffer.size.bytes file.charset file.sort.attributes
  files.sort.attributes bucket.path input.path.walk.recursively metadata.field metadata.location
  task.count task.partitioner value.schema key.schema schema.generation.enabled
  schema.generation.key.fields schema.generation.key.name schema.generation.value.name
  timestamp.mode timestamp.field parser.timestamp.date.formats parser.timestamp.timezone
  csv.first.row.as.header csv.case.sensitive.field.names csv.separator.char csv.quote.char
  csv.escape.char csv.ignore.leading.whitespace csv.ignore.quotations csv.keep.carriage.return
  csv.null.field.indicator csv.rfc.4180.parser.enabled csv.skip.lines csv.strict.quotes
  csv.verify.reader auto.topic.creation
com.github.jcustenborder.kafka.connect.spooldir.SpoolDirLineDelimitedSourceConnector
  input.path input.file.pattern finished.path error.path topic cleanup.policy halt.on.error
  file.minimum.age.ms empty.poll.wait.ms batch.size processing.file.extension
  file.buffer.size.bytes file.charset input.path.walk.recursively metadata.field
  metadata.location task.count task.partitioner timestamp.mode files.sort.attributes
io.confluent.connect.sftp.SftpCsvSourceConnector
  input.path input.file.pattern finished.path error.path kafka.topic topic cleanup.policy
  behavior.on.error batch.size empty.poll.wait.ms file.minimum.age.ms processing.file.extension
  schema.generation.enabled schema.generation.key.fields key.schema value.schema
  csv.first.row.as.header csv.separator.char csv.quote.char csv.skip.lines csv.escape.char
  csv.null.field.indicator sftp.host sftp.port sftp.username sftp.password tls.private.key
  tls.public.key tls.passphrase kerberos.keytab.path kerberos.user.principal
  confluent.topic.bootstrap.servers confluent.topic.replication.factor confluent.license
io.confluent.connect.sftp.SftpSinkConnector
  sftp.host sftp.port sftp.username sftp.password sftp.working.dir tls.private.key
  tls.public.key tls.passphrase kerberos.keytab.path kerberos.user.principal format.class
  flush.size rotate.interval.ms rotate.schedule.interval.ms schema.cache.size retry.backoff.ms
  shutdown.timeout.ms filename.offset.zero.pad.width schema.compatibility partitioner.class
  partition.field.name partition.duration.ms path.format locale timezone timestamp.extractor
  timestamp.field topics.dir storage.class store.url directory.delim file.delim avro.codec
  compression.type confluent.topic.bootstrap.servers confluent.topic.replication.factor
  confluent.license
io.confluent.kafka.connect.datagen.DatagenConnector
  kafka.topic max.interval iterations schema.string schema.filename schema.keyfield quickstart
  random.seed generate.timeout
org.apache.kafka.connect.file.FileStreamSourceConnector
  file topic batch.size
org.apache.kafka.connect.file.FileStreamSinkConnector
  file
io.debezium.connector.postgresql.PostgresConnector
  *debezium plugin.name slot.name slot.drop.on.stop slot.stream.params slot.max.retries
  slot.retry.delay.ms slot.failover publication.name publication.autocreate.mode
  replica.identity.autoset.values database.dbname schema.include.list schema.exclude.list
  database.sslmode database.sslcert database.sslpassword database.sslrootcert database.sslkey
  database.tcpKeepAlive database.initial.statements database.query.timeout.ms
  hstore.handling.mode interval.handling.mode money.fraction.digits status.update.interval.ms
  xmin.fetch.interval.ms include.unknown.datatypes unavailable.value.placeholder
  message.prefix.include.list message.prefix.exclude.list flush.lsn.source
  snapshot.isolation.mode lsn.flush.mode publish.via.partition.root schema.refresh.mode
io.debezium.connector.mysql.MySqlConnector
  *debezium *mysql
io.debezium.connector.mariadb.MariaDbConnector
  *debezium *mysql
"""


def _parsed() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in _TEXT.splitlines():
        if not line.startswith(" "):
            current = found[line] = []
            continue
        for word in line.split():
            current += found[word] if word.startswith("*") else [word]
    return {name: tuple(each) for name, each in found.items() if not name.startswith("*")}


DOCUMENTED = _parsed()
