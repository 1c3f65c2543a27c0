"""A tour of the tools as a script that was written for Kafka's: its pipes, its awk, its exit codes.

It is run by a shell with the scripts of bin/ in its path. What it found out is printed as
`name=value` lines, which the test reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.either import either_broker
from support.processes import BrokerProcess
from support.shell import Shell, shell

TOUR = r"""
set -eu
say() { printf '%s=%s\n' "$1" "$2"; }
at="--bootstrap-server $BOOTSTRAP"

# Topics.
kafka-topics.sh $at --create --topic orders --partitions 3 --replication-factor 1 >created.txt
say created "$(cat created.txt)"
kafka-topics.sh $at --create --if-not-exists --topic orders
if kafka-topics.sh $at --create --topic orders >again.txt; then say again succeeded; fi
say again "$(grep -c 'already exists' again.txt)"
kafka-topics.sh $at --describe --topic orders >described.txt
say partitions "$(sed -n 's/.*PartitionCount: \([0-9]*\).*/\1/p' described.txt)"
say leaders "$(awk -F'\t' '/Partition: / {sub("Leader: ", "", $4); print $4}' described.txt |
    sort -u)"
say ill "$(kafka-topics.sh $at --describe --under-replicated-partitions | wc -l)"

# Records in and out.
i=0
while [ $i -lt 12 ]; do echo "key$i:value$i"; i=$((i + 1)); done |
    kafka-console-producer.sh $at --topic orders \
        --reader-property parse.key=true --reader-property key.separator=:
offsets() { kafka-get-offsets.sh $at --topic orders "$@" | awk -F: '{n += $3} END {print n}'; }
say end "$(offsets)"
say start "$(offsets --time earliest)"
kafka-console-consumer.sh $at --topic orders --group readers --from-beginning --max-messages 12 \
    --timeout-ms 60000 --formatter-property print.key=true \
    --formatter-property key.separator=, >read.txt 2>counted.txt
say read "$(sort -u read.txt | grep -c '^key[0-9]*,value[0-9]*$')"
say counted "$(grep -c 'Processed a total of 12 messages' counted.txt)"

# The group and its offsets.
say group "$(kafka-consumer-groups.sh $at --list | grep -cx readers)"
lag() {
    kafka-consumer-groups.sh $at --describe --group readers 2>/dev/null |
        awk '$2 == "orders" {n += $6} END {print n}'
}
say lag "$(lag)"
kafka-consumer-groups.sh $at --group readers --topic orders --reset-offsets --to-earliest \
    --execute >reset.txt
say reset "$(awk '$2 == "orders" {n += $4} END {print n}' reset.txt)"
say lag_after_reset "$(lag)"
kafka-consumer-groups.sh $at --group readers --topic orders:0 --reset-offsets --to-latest \
    --export --dry-run >plan.csv
say exported "$(cut -d, -f2,3 plan.csv)"
say state "$(kafka-consumer-groups.sh $at --describe --group readers --state |
    awk '$1 == "readers" {print $(NF - 1)}')"
say type "$(kafka-groups.sh $at --list | awk '$1 == "readers" {print $2}')"

# Settings.
entity="--entity-type topics --entity-name orders"
kafka-configs.sh $at --alter $entity \
    --add-config retention.ms=3600000,cleanup.policy=[delete,compact]
kafka-configs.sh $at --describe $entity >settings.txt
say retention "$(sed -n 's/^  retention.ms=\([0-9]*\) .*/\1/p' settings.txt)"
say policy "$(sed -n 's/^  cleanup.policy=\([a-z,]*\) .*/\1/p' settings.txt)"
kafka-configs.sh $at --alter $entity --delete-config retention.ms,cleanup.policy >/dev/null
say settings "$(kafka-configs.sh $at --describe $entity | grep -c synonyms || true)"

# Records go away.
printf '{"partitions": [{"topic": "orders", "partition": 0, "offset": -1}], "version": 1}' >cut.json
say low_watermark "$(kafka-delete-records.sh $at --offset-json-file cut.json |
    sed -n 's/.*low_watermark: //p')"
say first "$(kafka-get-offsets.sh $at --topic-partitions orders:0 --time -2 | cut -d: -f3)"

# The cluster.
say cluster "$(kafka-cluster.sh cluster-id $at | sed 's/Cluster ID: //' | wc -c)"
say leader "$(kafka-metadata-quorum.sh $at describe --status | awk '/^LeaderId:/ {print $2}')"
say features "$(kafka-features.sh $at describe | grep -c 'FinalizedVersionLevel: ')"
say nodes "$(kafka-broker-api-versions.sh $at | grep -c '(id: .* -> ($')"
say dirs "$(kafka-log-dirs.sh $at --describe --topic-list orders | tail -n 1 |
    grep -o '"partition":"orders-[0-9]"' | wc -l)"

# The end.
kafka-consumer-groups.sh $at --delete --group readers >/dev/null
say groups "$(kafka-consumer-groups.sh $at --list | grep -cx readers || true)"
kafka-topics.sh $at --delete --topic 'ord.*'
say topics "$(kafka-topics.sh $at --list --exclude-internal | grep -c . || true)"
"""


# The rarer ones.
DETOUR = r"""
set -eu
say() { printf '%s=%s\n' "$1" "$2"; }
at="--bootstrap-server $BOOTSTRAP"
kafka-topics.sh $at --create --topic busy --partitions 2 >/dev/null

# Measuring. What is printed begins with how many records there were.
say sent "$(kafka-producer-perf-test.sh --topic busy --num-records 500 --record-size 100 \
    --throughput -1 --command-property bootstrap.servers=$BOOTSTRAP | tail -n 1 | cut -d, -f1)"
kafka-consumer-perf-test.sh $at --topic busy --num-records 500 --timeout 60000 >perf.csv
say columns "$(head -n 1 perf.csv | tr ',' '\n' | wc -l)"
say consumed "$(tail -n 1 perf.csv | cut -d, -f5 | tr -d ' ')"
say latencies "$(kafka-e2e-latency.sh $at --topic busy --num-records 20 --producer-acks all \
    --record-size 50 | grep -c '^Percentiles: ')"
say acknowledged "$(kafka-verifiable-producer.sh $at --topic busy --max-messages 10 |
    grep -c '"name":"producer_send_success"')"

# A share group.
kafka-configs.sh $at --alter --group sharers \
    --add-config share.auto.offset.reset=earliest >/dev/null
say shared "$(kafka-console-share-consumer.sh $at --topic busy --group sharers \
    --max-messages 7 --timeout-ms 60000 2>/dev/null | wc -l)"
say share_groups "$(kafka-share-groups.sh $at --list)"
say streams_groups "$(kafka-streams-groups.sh $at --list | grep -c . || true)"

# Replicas.
printf '{"topics": [{"topic": "busy"}], "version": 1}' >topics.json
kafka-reassign-partitions.sh $at --generate --topics-to-move-json-file topics.json \
    --broker-list 1 >generated.txt
tail -n 1 generated.txt >plan.json
kafka-reassign-partitions.sh $at --execute --reassignment-json-file plan.json >/dev/null
say reassigned "$(kafka-reassign-partitions.sh $at --verify --reassignment-json-file plan.json |
    grep -c 'Reassignment of partition busy-[01] is completed.')"
if kafka-leader-election.sh $at --election-type preferred --all-topic-partitions >/dev/null
then say elected yes; fi

# Inside.
say transactions "$(kafka-transactions.sh $at list | head -n 1 | tr -s '\t ' ',')"
say metrics "$(kafka-client-metrics.sh $at --list | grep -c . || true)"
say dumped "$(kafka-dump-log.sh --files $DATA/busy-0/00000000000000000000.log --print-data-log |
    grep -c '^| offset: ')"
say held "$(kafka-get-offsets.sh $at --topic-partitions busy:0 | cut -d: -f3)"
say brokers "$(kafka-metadata-shell.sh \
    --snapshot $DATA/__cluster_metadata-0/00000000000000000000.log ls /image/cluster/brokers)"
id=$(kafka-storage.sh random-uuid)
cat >c.properties <<END
process.roles=controller
node.id=5
listeners=CONTROLLER://:9093
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=localhost:9093
log.dirs=new
END
kafka-storage.sh format -c c.properties -t "$id" --standalone >/dev/null
say formatted "$(kafka-storage.sh info -c c.properties | grep -c "cluster.id=$id")"
"""


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    # Members of share groups hear of their partitions with the second heartbeat.
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "group.share.min.heartbeat.interval.ms": "100",
        "group.share.heartbeat.interval.ms": "100",
        "group.share.min.assignment.interval.ms": "0",
        "group.share.assignment.interval.ms": "0",
    }
    with either_broker(request, tmp_path_factory.mktemp("broker"), settings) as process:
        yield process


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with shell(tmp_path_factory.mktemp("shell")) as quick:
        yield quick


def follow(quick: Shell, script: str, broker: BrokerProcess, folder: Path) -> dict[str, str]:
    """What the script says, by name."""
    (data,) = broker.data_folders
    done = quick.run(script, folder, {"BOOTSTRAP": broker.bootstrap, "DATA": str(data)})
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def test_tour(quick: Shell, broker: BrokerProcess, tmp_path: Path) -> None:
    found = follow(quick, TOUR, broker, tmp_path)
    first = found.pop("low_watermark")
    assert found.pop("first") == first
    assert found.pop("exported") == f"0,{first}"
    assert int(found.pop("features")) >= 5
    assert found == {
        "created": "Created topic orders.",
        "again": "1",
        "partitions": "3",
        "leaders": "1",
        "ill": "0",
        "end": "12",
        "start": "0",
        "read": "12",
        "counted": "1",
        "group": "1",
        "lag": "0",
        "reset": "0",
        "lag_after_reset": "12",
        "state": "Empty",
        "type": "Classic",
        "retention": "3600000",
        "policy": "delete,compact",
        "settings": "0",
        "cluster": "23",
        "leader": "1",
        "nodes": "1",
        "dirs": "3",
        "groups": "0",
        "topics": "0",
    }


@pytest.mark.long("the same as the tour, with the mistakes; each tool has its own tests")
def test_detour(quick: Shell, broker: BrokerProcess, tmp_path: Path) -> None:
    found = follow(quick, DETOUR, broker, tmp_path)
    assert found.pop("dumped") == found.pop("held")
    assert int(found.pop("consumed")) >= 500
    assert found == {
        "sent": "500 records sent",
        "columns": "10",
        "latencies": "1",
        "acknowledged": "10",
        "shared": "7",
        "share_groups": "sharers",
        "streams_groups": "0",
        "reassigned": "2",
        "elected": "yes",
        "transactions": "TransactionalId,Coordinator,ProducerId,TransactionState,",
        "metrics": "0",
        "brokers": "1",
        "formatted": "1",
    }
