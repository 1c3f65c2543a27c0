"""Exercises on what runs on top of brokers: schemas, REST, Connect, Streams, SQL, Spark, speed."""

from __future__ import annotations

from moldau.learning.machine.checks import (
    ConnectorRuns,
    FileHolds,
    HoldsRecords,
    SqlHas,
    SubjectHas,
    TopicHas,
)
from moldau.learning.machine.exercise import Exercise

__all__ = ["SECOND_HALF"]

_SCHEMAS = Exercise(
    name="schemas",
    title="Schema evolution",
    minutes=10,
    needs=("registry",),
    text="""\
A Schema Registry keeps the schemas of topics, in versions. A record names its schema by an id,
so a reader knows how it was written. Before a new version is accepted the registry checks that
readers with it can read what was written with the version before (`BACKWARD`, the default):
fields may be removed, and added with a default.""",
    task="""\
Send a record to `learn-customers` with an Avro schema of one field, `name`. Then send one with a
second version that has `email` as well, with a default. Check that the registry refuses a
version where `email` has no default and is new.""",
    hint="`moldau avro-console-producer --reader-property schema.registry.url={registry} "
    "--reader-property value.schema='...'`; `moldau schemas check SUBJECT FILE` asks without "
    "registering.",
    solution="""\
cat > one.avsc <<'END'
{"type": "record", "name": "Customer", "fields": [{"name": "name", "type": "string"}]}
END
cat > two.avsc <<'END'
{"type": "record", "name": "Customer", "fields": [
  {"name": "name", "type": "string"},
  {"name": "email", "type": "string", "default": "unknown"}]}
END
cat > wrong.avsc <<'END'
{"type": "record", "name": "Customer", "fields": [
  {"name": "name", "type": "string"},
  {"name": "age", "type": "int"}]}
END
moldau topics --create --topic learn-customers
send() {
  moldau avro-console-producer --topic learn-customers \\
    --reader-property schema.registry.url={registry} --reader-property value.schema.file="$1"
}
echo '{"name": "Ada"}' | send one.avsc
echo '{"name": "Bob", "email": "bob@example.org"}' | send two.avsc
moldau schemas check learn-customers-value wrong.avsc --registry {registry} ||
  echo 'the registry would refuse it'
moldau schemas diff learn-customers-value 1 2 --registry {registry}
moldau avro-console-consumer --topic learn-customers --from-beginning --max-messages 2 \\
  --formatter-property schema.registry.url={registry}""",
    checks=(
        SubjectHas(subject="learn-customers-value", versions=2, field="email"),
        HoldsRecords(topic="learn-customers", count=2),
    ),
    topics=("learn-customers",),
)

_REST = Exercise(
    name="rest",
    title="Kafka over HTTP",
    minutes=5,
    needs=("rest",),
    text="""\
The REST Proxy lets programs without a Kafka client write and read. `{rest}/docs` lists all
requests. API v3 addresses a cluster by its id; `/v3/clusters` returns it.""",
    task="""\
Create the topic `learn-http` through the proxy, send the JSON value `{"count": 1}` to it with
API v2 and read it back.""",
    hint="POST to `{rest}/topics/learn-http` with the content type "
    '`application/vnd.kafka.json.v2+json` and the body `{"records": [{"value": {"count": 1}}]}`.',
    solution="""\
cluster=$(curl -s {rest}/v3/clusters |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["data"][0]["cluster_id"])')
curl -s -X POST -H 'Content-Type: application/json' \\
  --data '{"topic_name": "learn-http", "partitions_count": 2}' \\
  {rest}/v3/clusters/$cluster/topics
curl -s -X POST -H 'Content-Type: application/vnd.kafka.json.v2+json' \\
  --data '{"records": [{"value": {"count": 1}}]}' {rest}/topics/learn-http
curl -s "{rest}/v3/clusters/$cluster/topics/learn-http/partitions/-/records?value_format=JSON" """,
    checks=(
        TopicHas(topic="learn-http", partitions=2),
        HoldsRecords(topic="learn-http", count=1, values=('{"count":1}',)),
    ),
    topics=("learn-http",),
)

_CONNECT = Exercise(
    name="connect",
    title="Connectors",
    minutes=10,
    needs=("connect",),
    text="""\
Connect moves data between topics and other systems by configuration. A worker runs here;
connectors are created through its REST interface, which `moldau connect` calls. A source writes
to topics, a sink reads from them, and a transform changes records on the way.""",
    task="""\
Write two lines to a file `in.txt` and let the connector `learn-source` (`FileStreamSource`) send
them to the topic `learn-lines`. Let `learn-sink` (`FileStreamSink`) write the topic to
`out.txt`. Add a line to `in.txt` and see it arrive.""",
    hint="`moldau connect create NAME connector.class=FileStreamSource file=$PWD/in.txt topic=... "
    "--url {connect}`. The worker runs in another folder, so name files by their whole path.",
    solution="""\
printf 'one\\ntwo\\n' > in.txt
text=org.apache.kafka.connect.storage.StringConverter
moldau connect create learn-source connector.class=FileStreamSource file="$PWD/in.txt" \\
  topic=learn-lines value.converter=$text --url {connect}
moldau connect create learn-sink connector.class=FileStreamSink file="$PWD/out.txt" \\
  topics=learn-lines value.converter=$text --url {connect}
echo three >> in.txt
for _ in $(seq 60); do grep -qs three out.txt && break; sleep 0.5; done
cat out.txt
moldau connect status learn-sink --url {connect}""",
    checks=(
        ConnectorRuns(name="learn-source"),
        ConnectorRuns(name="learn-sink"),
        HoldsRecords(topic="learn-lines", count=3),
        FileHolds(name="out.txt", lines=("one", "two", "three")),
    ),
    topics=("learn-lines",),
)

_STREAMS = Exercise(
    name="streams",
    title="A stream application",
    minutes=10,
    text="""\
`moldau.streams` is Kafka Streams for Python. A program declares what becomes of records; its
state is kept locally and in a changelog topic, so an instance that is killed continues where it
was, and each record counts once.""",
    task="""\
Write a program that counts the words of the topic `learn-text` and writes the counts to
`learn-counts` (keys text, values `long`). Start it as the application `learn-words`, and send
`hello world` and `hello Moldau`.""",
    hint="`flat_map_values`, `group_by`, `count`, `to_stream`, `to`: docs/streams.md has this very "
    "program. `moldau streams start FILE --application-id learn-words` runs it.",
    solution="""\
cat > words.py <<'END'
from moldau.streams import StreamsBuilder


def build():
    builder = StreamsBuilder()
    (
        builder.stream("learn-text", key_serde="string", value_serde="string")
        .flat_map_values(lambda line: line.lower().split())
        .group_by(lambda key, word: word, key_serde="string", value_serde="string")
        .count(store="counts")
        .to_stream()
        .to("learn-counts", key_serde="string", value_serde="long")
    )
    return builder.build()
END
moldau topics --create --topic learn-text
moldau topics --create --topic learn-counts
printf 'hello world\\nhello Moldau\\n' | moldau console-producer --topic learn-text
moldau streams start words.py --application-id learn-words --state-dir state \\
  --property auto.offset.reset=earliest > words.log 2>&1 &
moldau console-consumer --topic learn-counts --from-beginning --max-messages 3 \\
  --timeout-ms 60000 --isolation-level read_committed --value-deserializer long \\
  --formatter-property print.key=true
kill %1
wait""",
    checks=(
        HoldsRecords(
            topic="learn-counts",
            count=3,
            pairs=(("hello", "2"), ("world", "1"), ("moldau", "1")),
            value_deserializer="long",
        ),
    ),
    topics=("learn-text", "learn-counts"),
)

_SQL = Exercise(
    name="sql",
    title="SQL over topics",
    minutes=10,
    needs=("sql",),
    text="""\
The SQL server runs ksqlDB's language. `CREATE STREAM` and `CREATE TABLE` declare topics, and
`CREATE TABLE ... AS SELECT` starts a query that runs for good: each new row changes its table. A
query with `EMIT CHANGES` follows, one without returns what is there.""",
    task="""\
Declare the stream `LEARN_PAYMENTS` (`card STRING KEY, amount INT`) over the topic
`learn-payments` as JSON, with 1 partition. Start a query that keeps the table `LEARN_TOTALS`:
the sum of each card. Insert payments of 10 and 32 for the card `4711` and look the total up.""",
    hint="`moldau sql --server {sql}` is a shell, `-e 'STATEMENTS;'` executes and ends. "
    "`SET 'auto.offset.reset' = 'earliest';` lets a query see rows from before.",
    solution="""\
cat > totals.sql <<'END'
CREATE STREAM learn_payments (card STRING KEY, amount INT)
  WITH (kafka_topic='learn-payments', value_format='JSON', partitions=1);
CREATE TABLE learn_totals WITH (kafka_topic='learn-totals') AS
  SELECT card, SUM(amount) AS total FROM learn_payments GROUP BY card;
END
moldau sql --server {sql} -f totals.sql
# The new query reads from the end of its topic, so payments follow when it is running.
for _ in $(seq 60); do
  moldau sql --server {sql} -e "INSERT INTO learn_payments VALUES ('warm-up', 0);" > /dev/null
  moldau sql --server {sql} -e "SELECT * FROM learn_totals WHERE card = 'warm-up';" |
    grep -q warm-up && break
  sleep 0.5
done
moldau sql --server {sql} -e "INSERT INTO learn_payments VALUES ('4711', 10);"
moldau sql --server {sql} -e "INSERT INTO learn_payments VALUES ('4711', 32);"
for _ in $(seq 60); do
  moldau sql --server {sql} -e "SELECT * FROM learn_totals WHERE card = '4711';" > total.txt
  grep -q 42 total.txt && break
  sleep 0.5
done
cat total.txt""",
    checks=(
        SqlHas(name="LEARN_PAYMENTS"),
        SqlHas(name="LEARN_TOTALS"),
        HoldsRecords(topic="learn-totals", count=1, pairs=(("4711", '{"TOTAL":42}'),)),
    ),
)

_PIPELINES = Exercise(
    name="pipelines",
    title="A pipeline on Spark",
    minutes=15,
    needs=("spark",),
    long="Spark takes half a minute to start",
    text="""\
A pipeline is a file: a source, steps in SQL, a sink, and a topic for what cannot be read. It
runs on Apache Spark (`make install-spark`) and writes each result once, whatever is killed in
between.""",
    task="""\
Declare a pipeline `learn-big-orders` that reads JSON orders (`id STRING, amount DOUBLE`) from
`learn-orders-in` and writes those above 100 to `learn-big-orders`. Start it and send two orders,
one above and one below.""",
    hint="docs/pipelines.md has the form of the file; `moldau pipelines start FILE` starts it, and "
    "`moldau pipelines list` shows its state.",
    solution="""\
cat > big-orders.yaml <<'END'
name: learn-big-orders
source:
  topic: learn-orders-in
  format: json
  schema: id STRING, amount DOUBLE
  startingOffsets: earliest
steps:
  - sql: SELECT id, amount FROM input WHERE amount > 100
sink: {topic: learn-big-orders, format: json, key: id}
dead_letter: learn-dead-letter
END
moldau topics --create --topic learn-orders-in
moldau topics --create --topic learn-big-orders
moldau pipelines start big-orders.yaml
printf '{"id": "o1", "amount": 250}\\n{"id": "o2", "amount": 5}\\n' |
  moldau console-producer --topic learn-orders-in
moldau console-consumer --topic learn-big-orders --from-beginning --max-messages 1 \\
  --timeout-ms 120000 --isolation-level read_committed
moldau pipelines list
moldau pipelines stop learn-big-orders""",
    checks=(
        HoldsRecords(
            topic="learn-big-orders", count=1, pairs=(("o1", '{"id":"o1","amount":250.0}'),)
        ),
    ),
    topics=("learn-orders-in", "learn-big-orders", "learn-dead-letter"),
)

_PERF = Exercise(
    name="perf",
    title="A million records",
    minutes=5,
    long="a million records are written and read",
    text="""\
`moldau producer-perf-test` writes records as fast as it can, or at a given rate, and reports
throughput and latency; `moldau consumer-perf-test` reads. Batches make the difference:
`batch.size` and `linger.ms` decide how many records share a request. `moldau metrics watch`
shows the broker's counters live if it was started with `--metrics-port`.""",
    task="""\
Write a million records of 100 bytes to `learn-perf` (3 partitions) without a limit, with
`linger.ms=20` and `batch.size=131072`, and read them. In a second terminal, watch the offsets
grow with `moldau get-offsets --topic learn-perf`.""",
    hint="`--num-records 1000000 --record-size 100 --throughput -1 --command-property linger.ms=20 "
    "...`; the reader is `moldau consumer-perf-test --topic learn-perf --num-records 1000000`.",
    solution="""\
moldau topics --create --topic learn-perf --partitions 3
moldau producer-perf-test --topic learn-perf --num-records 1000000 --record-size 100 \\
  --throughput -1 --command-property linger.ms=20 batch.size=131072 &
while kill -0 $! 2>/dev/null; do
  moldau get-offsets --topic learn-perf | tr '\\n' ' '; echo
  sleep 1
done
moldau consumer-perf-test --topic learn-perf --num-records 1000000""",
    checks=(
        TopicHas(topic="learn-perf", partitions=3),
        HoldsRecords(topic="learn-perf", count=1_000_000),
    ),
    topics=("learn-perf",),
)

SECOND_HALF = (_SCHEMAS, _REST, _CONNECT, _STREAMS, _SQL, _PIPELINES, _PERF)
