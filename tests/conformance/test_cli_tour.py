"""A tour of the tools as a script that was written for Kafka's: its pipes, its awk, its exit codes.

It is run by a shell with the scripts of bin/ in the path. What it found out is printed as
`name=value` lines, which the test reads.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from support.processes import BrokerProcess

BIN = Path(__file__).parents[2] / "bin"

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
    --formatter-property print.key=true --formatter-property key.separator=, >read.txt 2>counted.txt
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


def test_tour(broker: BrokerProcess, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "BOOTSTRAP": broker.bootstrap,
    }
    done = subprocess.run(
        ["sh", "-c", TOUR],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
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
