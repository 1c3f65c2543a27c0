"""Exercises on brokers: topics, console tools, faults, compaction, groups."""

from __future__ import annotations

from moldau.learning.machine.checks import (
    Compacted,
    GroupHasRead,
    HoldsRecords,
    LeaderMoved,
    TopicHas,
)
from moldau.learning.machine.exercise import Exercise

__all__ = ["FIRST_HALF"]

_TOPICS = Exercise(
    name="topics",
    title="Topics and partitions",
    minutes=5,
    text="""\
A topic is a log of records that is split into partitions. Each partition has an order of its
own, and records with the same key go to the same partition, so the number of partitions bounds
how many consumers of a group work in parallel. It can be raised later, but then keys move; it
cannot be lowered.

`moldau topics` creates, describes, changes and deletes topics, with the options of
kafka-topics.sh.""",
    task="""\
Create the topic `learn-orders` with 3 partitions and a retention of one day
(`retention.ms=86400000`). Describe it. Then raise it to 6 partitions.""",
    hint="`--create`, `--describe` and `--alter` all take `--topic` and, except for describe, "
    "`--partitions`. A configuration is `--config KEY=VALUE`.",
    solution="""\
moldau topics --create --topic learn-orders --partitions 3 --config retention.ms=86400000
moldau topics --describe --topic learn-orders
moldau topics --alter --topic learn-orders --partitions 6
moldau topics --describe --topic learn-orders""",
    checks=(TopicHas(topic="learn-orders", partitions=6, configs={"retention.ms": "86400000"}),),
    topics=("learn-orders",),
)

_CONSOLE = Exercise(
    name="console",
    title="Console tools",
    minutes=5,
    text="""\
The console producer sends each line of its input as a record, the console consumer prints
records. A key is what precedes a separator, if `parse.key=true`. A consumer with a group commits
how far it has read, and continues there when it is started again.""",
    task="""\
Send three records with keys to the topic `learn-fruit`: `anna:apples`, `ben:pears`,
`anna:plums`. Read them, with their keys and partitions, as the group `learn-readers`.""",
    hint="`--reader-property parse.key=true --reader-property key.separator=:` for the producer, "
    "`--from-beginning --max-messages 3 --formatter-property print.key=true` for the consumer.",
    solution="""\
moldau topics --create --if-not-exists --topic learn-fruit --partitions 3
printf 'anna:apples\\nben:pears\\nanna:plums\\n' | moldau console-producer --topic learn-fruit \\
  --reader-property parse.key=true --reader-property key.separator=:
moldau console-consumer --topic learn-fruit --group learn-readers --from-beginning \\
  --max-messages 3 --formatter-property print.key=true --formatter-property print.partition=true
moldau consumer-groups --describe --group learn-readers""",
    checks=(
        HoldsRecords(
            topic="learn-fruit",
            count=3,
            pairs=(("anna", "apples"), ("ben", "pears"), ("anna", "plums")),
        ),
        GroupHasRead(group="learn-readers", topic="learn-fruit"),
    ),
    topics=("learn-fruit",),
)

_FAULTS = Exercise(
    name="faults",
    title="Fault tolerance and leader election",
    minutes=10,
    needs=("cluster",),
    text="""\
Three nodes run for this exercise, each a broker and a controller. A partition with three
replicas has one leader, which serves clients, and followers that copy it; those that keep up are
in sync (ISR). If the leader dies, the controllers elect another replica of the ISR, and clients
find it.

With `acks=all` and `min.insync.replicas=2` a write succeeds only when two replicas have it. One
node may therefore be lost without losing a record or a write. With two nodes lost the partition
refuses writes rather than keep a single copy, and the controllers have no majority.

`moldau learn pid N` prints the process id of node N, and `moldau start
{cluster_data}/node-N.properties` starts a node again.""",
    task="""\
Create the topic `accounts` with 1 partition and 3 replicas on `{cluster}` and write a record.
Kill its leader with SIGKILL, see who leads now, and write another. Kill the new leader too, and
see a write fail. Start both nodes again until all three replicas are in sync, and read your
records.""",
    hint="`moldau topics --describe` shows Leader and Isr. `kill -9 $(moldau learn pid 1)` kills "
    "node 1.",
    solution="""\
at="--bootstrap-server {cluster}"
moldau topics $at --create --topic accounts --partitions 1 --replication-factor 3 \\
  --config min.insync.replicas=2
echo 'alice 10' | moldau console-producer $at --topic accounts
leader() {
  moldau topics $at --describe --topic accounts | sed -n 's/.*Leader: \\([0-9]*\\).*/\\1/p'
}
first=$(leader)
kill -9 "$(moldau learn pid "$first")"
echo "node $first led the partition and is dead"
echo 'bob 20' | moldau console-producer $at --topic accounts
moldau topics $at --describe --topic accounts
second=$(leader)
kill -9 "$(moldau learn pid "$second")"
echo "node $second led the partition and is dead: one replica is left"
echo 'carol 30' | moldau console-producer $at --topic accounts --max-block-ms 4000 \\
  --command-property delivery.timeout.ms=5000 --command-property request.timeout.ms=3000
for node in $first $second; do
  moldau start {cluster_data}/node-$node.properties > restarted-$node.log 2>&1 &
done
for _ in $(seq 60); do
  moldau topics $at --describe --topic accounts 2>/dev/null | grep -q 'Isr: .,.,.' && break
  sleep 1
done
moldau topics $at --describe --topic accounts
moldau console-consumer $at --topic accounts --from-beginning --max-messages 2""",
    checks=(
        TopicHas(topic="accounts", replicas=3, on_cluster=True),
        LeaderMoved(topic="accounts"),
        HoldsRecords(topic="accounts", count=2, on_cluster=True),
    ),
)

_COMPACTION = Exercise(
    name="compaction",
    title="Compaction",
    minutes=10,
    text="""\
A topic with `cleanup.policy=compact` keeps at least the last value of each key: a table as a
log. The cleaner copies old segments without the records that a later one with the same key
replaces; a record without a value, a tombstone, deletes its key. The active segment, the one
that is written to, is never compacted, so it has to be closed first: here after a tenth of a
second (`segment.ms=100`).

`moldau dump-log` prints a segment's records as they are on disk. The broker's data is in
`{data}`.""",
    task="""\
Create the topic `empsalary`, compacted, with `segment.ms=100`, `min.cleanable.dirty.ratio=0.01`
and `delete.retention.ms=100`. Write salaries: `anna:3000`, `ben:2500`, `anna:3300`, `ben:2700`,
`anna:3600`. Wait a moment and write `carl:2000`, which closes the segment before. Look at the
first segment with dump-log until only the last salaries of Anna and Ben are left in it.""",
    hint="The segment is `{data}/empsalary-0/00000000000000000000.log`; `--print-data-log` prints "
    "keys and values. Nothing happens? Write one more record: only a new record closes a segment.",
    solution="""\
moldau topics --create --topic empsalary --config cleanup.policy=compact --config segment.ms=100 \\
  --config min.cleanable.dirty.ratio=0.01 --config delete.retention.ms=100
send() {
  moldau console-producer --topic empsalary \\
    --reader-property parse.key=true --reader-property key.separator=:
}
printf 'anna:3000\\nben:2500\\nanna:3300\\nben:2700\\nanna:3600\\n' | send
first={data}/empsalary-0/00000000000000000000.log
moldau dump-log --files $first --print-data-log
sleep 1
echo 'carl:2000' | send
for _ in $(seq 60); do
  moldau dump-log --files $first --print-data-log > dumped.txt
  grep -q 'payload: 3000' dumped.txt || break
  sleep 1
done
cat dumped.txt""",
    checks=(
        TopicHas(topic="empsalary", configs={"cleanup.policy": "compact"}),
        Compacted(topic="empsalary", latest={"anna": "3600", "ben": "2700", "carl": "2000"}),
    ),
    topics=("empsalary",),
)

_GROUPS = Exercise(
    name="groups",
    title="Consumer groups and rebalances",
    minutes=10,
    text="""\
Consumers with the same group share the partitions of a topic. When one joins or leaves, the
group rebalances: partitions move, and each member continues at the committed offsets. There are
never more working members than partitions.

`moldau consumer-groups --describe --group G --members --verbose` shows who has which partition.
Offsets of a group without members can be reset, to read again.""",
    task="""\
Create `learn-clicks` with 4 partitions and send 100 records. Start two console consumers of the
group `learn-shop` in two terminals and look at the members of the group. Stop both, reset the
group to the beginning, and read everything once more with one consumer.""",
    hint="`--timeout-ms 5000` ends a consumer when nothing arrives. "
    "`moldau consumer-groups --group learn-shop --topic learn-clicks --reset-offsets --to-earliest "
    "--execute` resets.",
    solution="""\
moldau topics --create --topic learn-clicks --partitions 4
seq 100 | moldau console-producer --topic learn-clicks --command-property \\
  partitioner.class=org.apache.kafka.clients.producer.RoundRobinPartitioner
for member in one two; do
  moldau console-consumer --topic learn-clicks --group learn-shop --from-beginning \\
    --timeout-ms 4000 > read-by-$member.txt 2>/dev/null &
done
for _ in $(seq 60); do
  moldau consumer-groups --describe --group learn-shop --members > members.txt 2>/dev/null || true
  [ "$(grep -c '^learn-shop' members.txt)" = 2 ] && break
  sleep 0.5
done
cat members.txt
wait
wc -l read-by-one.txt read-by-two.txt
moldau consumer-groups --group learn-shop --topic learn-clicks --reset-offsets \\
  --to-earliest --execute
moldau console-consumer --topic learn-clicks --group learn-shop --max-messages 100 > again.txt
wc -l again.txt""",
    checks=(
        TopicHas(topic="learn-clicks", partitions=4),
        HoldsRecords(topic="learn-clicks", count=100),
        GroupHasRead(group="learn-shop", topic="learn-clicks"),
    ),
    topics=("learn-clicks",),
)

FIRST_HALF = (_TOPICS, _CONSOLE, _FAULTS, _COMPACTION, _GROUPS)
