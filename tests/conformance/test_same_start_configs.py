"""Brokers, controllers and both: whoever Apache Kafka starts starts here, and nobody else.

Each change is made to the configuration of each role. Where both accept one, they agree on what
clients and other nodes are told to connect to.
"""

from __future__ import annotations

import subprocess

import pytest

from moldau.broker.config import BrokerConfig, Listener
from moldau.config import ConfigError
from support.java import program
from support.processes import kafka_missing

BASES = {
    "broker": {
        "process.roles": "broker",
        "node.id": "4",
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "h:9093",
        "log.dirs": "/data",
    },
    "controller": {
        "process.roles": "controller",
        "node.id": "2",
        "listeners": "CONTROLLER://127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "h:9093",
        "log.dirs": "/data",
    },
    "both": {
        "process.roles": "broker,controller",
        "node.id": "2",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "h:9093",
        "log.dirs": "/data",
    },
}
# `key=value` sets, `-key` removes; several are separated by semicolons.
CHANGES = """
-controller.quorum.bootstrap.servers
-controller.quorum.bootstrap.servers;controller.quorum.voters=2@a:9093
-controller.quorum.bootstrap.servers;controller.quorum.voters=4@a:9093,2@b:1
-controller.quorum.bootstrap.servers;controller.quorum.voters=9@a:9093
controller.quorum.voters=2@a:9093
controller.quorum.voters=
controller.quorum.bootstrap.servers=
controller.quorum.bootstrap.servers=a
controller.quorum.bootstrap.servers=a:1,b:2
controller.quorum.bootstrap.servers=a:1,,b:2
controller.quorum.bootstrap.servers=:1
controller.quorum.voters=2@a:9093,2@b:9093
-controller.listener.names
controller.listener.names=
controller.listener.names=PLAINTEXT
controller.listener.names=OTHER
controller.listener.names=CONTROLLER,OTHER
controller.listener.names=OTHER,CONTROLLER
controller.listener.names=controller
controller.listener.names=SSL
controller.listener.names=CONTROLLER,CONTROLLER
controller.quorum.auto.join.enable=true
-controller.quorum.bootstrap.servers;controller.quorum.voters=2@a:9093;controller.quorum.auto.join.enable=true
-listeners
listeners=
listeners=CONTROLLER://:9093
listeners=PLAINTEXT://:9092
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9092
listeners=CONTROLLER://:9093,OTHER://:9094
listeners=CONTROLLER://:9093,OTHER://:9094;controller.listener.names=CONTROLLER,OTHER
listeners=CONTROLLER://:9093,OTHER://:9094;controller.listener.names=OTHER
listeners=CONTROLLER://0.0.0.0:9093
listeners=PLAINTEXT://0.0.0.0:9092
listeners=PLAINTEXT://0.0.0.0:9092;advertised.listeners=PLAINTEXT://h:9092
listeners=SSL://:9092
listeners=SSL://:9092;security.inter.broker.protocol=SSL
listeners=SSL://:9092;security.inter.broker.protocol=SSL;listener.security.protocol.map=SSL:SSL,CONTROLLER:PLAINTEXT
listeners=SSL://:9092;security.inter.broker.protocol=SSL;listener.security.protocol.map=SSL:SSL
listeners=CONTROLLER://:9093;listener.security.protocol.map=CONTROLLER:SSL
listeners=CONTROLLER://:9093;listener.security.protocol.map=PLAINTEXT:PLAINTEXT
listeners=PLAINTEXT://:9092;listener.security.protocol.map=PLAINTEXT:PLAINTEXT
listeners=EXT://:9092,INT://:9094
listeners=EXT://:9092,INT://:9094;listener.security.protocol.map=EXT:PLAINTEXT,INT:PLAINTEXT,CONTROLLER:PLAINTEXT
listeners=EXT://:9092,INT://:9094;listener.security.protocol.map=EXT:PLAINTEXT,INT:PLAINTEXT,CONTROLLER:PLAINTEXT;inter.broker.listener.name=INT
listeners=EXT://:9092,INT://:9094;listener.security.protocol.map=EXT:PLAINTEXT,INT:PLAINTEXT,CONTROLLER:PLAINTEXT;inter.broker.listener.name=INT;advertised.listeners=EXT://h:1
listeners=EXT://:9092,INT://:9094;listener.security.protocol.map=EXT:PLAINTEXT,INT:PLAINTEXT,CONTROLLER:PLAINTEXT;inter.broker.listener.name=INT;advertised.listeners=EXT://h:1,INT://h:1
advertised.listeners=
advertised.listeners=PLAINTEXT://h:1
advertised.listeners=CONTROLLER://h:1
advertised.listeners=PLAINTEXT://h:1,CONTROLLER://h:2
advertised.listeners=PLAINTEXT://h:1,CONTROLLER://h:1
advertised.listeners=PLAINTEXT://0.0.0.0:1
advertised.listeners=CONTROLLER://0.0.0.0:1
advertised.listeners=SSL://h:1
advertised.listeners=OTHER://h:1
advertised.listeners=PLAINTEXT://:1
advertised.listeners=CONTROLLER://:1
advertised.listeners=PLAINTEXT://h:0
inter.broker.listener.name=PLAINTEXT
inter.broker.listener.name=CONTROLLER
inter.broker.listener.name=controller
inter.broker.listener.name=SSL
inter.broker.listener.name=NOPE
security.inter.broker.protocol=SSL
security.inter.broker.protocol=SASL_PLAINTEXT
security.inter.broker.protocol=PLAINTEXT;inter.broker.listener.name=PLAINTEXT
early.start.listeners=PLAINTEXT
early.start.listeners=CONTROLLER
early.start.listeners=controller
early.start.listeners=NOPE
early.start.listeners=
cordoned.log.dirs=/x
cordoned.log.dirs=*,/x
log.dirs=/a,/b;cordoned.log.dirs=/b
-node.id
node.id=-1
node.id=0
broker.id=9
broker.id=2
-node.id;broker.id=7
process.roles=
process.roles=broker,broker
process.roles=controller,controller
process.roles=Broker
process.roles=zookeeper
-process.roles
num.partitions=3;default.replication.factor=2
create.topic.policy.class.name=foo.Bar
broker.heartbeat.interval.ms=8000
broker.session.timeout.ms=100;broker.heartbeat.interval.ms=1000
unclean.leader.election.interval.ms=0
unclean.leader.election.interval.ms=-1
controller.quorum.election.timeout.ms=0
controller.quorum.election.timeout.ms=-1
controller.quorum.fetch.timeout.ms=1
controller.quorum.request.timeout.ms=0
controller.quorum.retry.backoff.ms=-1
controller.quorum.append.linger.ms=-1
controller.quorum.fetch.max.bytes=0
controller.quorum.fetch.snapshot.max.bytes=-1
controller.quorum.voters=2@a:9093;listeners=CONTROLLER://:9093
controller.quorum.voters=2@a:9093;listeners=PLAINTEXT://:9092,CONTROLLER://0.0.0.0:9093
controller.quorum.voters=2@a:19093;listeners=PLAINTEXT://:9092,OTHER://:9094,CONTROLLER://:9093;controller.listener.names=OTHER,CONTROLLER
controller.quorum.voters=2@a:19093;listeners=PLAINTEXT://:9092,CONTROLLER://:9093;advertised.listeners=PLAINTEXT://p:1,CONTROLLER://c:2
listeners=CONTROLLER://:9093;inter.broker.listener.name=PLAINTEXT
listeners=CONTROLLER://:9093;inter.broker.listener.name=PLAINTEXT;advertised.listeners=CONTROLLER://far:1
metadata.log.dir=/m
metadata.log.segment.bytes=100
metadata.log.segment.ms=-1
metadata.max.idle.interval.ms=-1
metadata.max.retention.bytes=-5
metadata.log.max.record.bytes.between.snapshots=0
metadata.log.max.snapshot.interval.ms=-1
initial.broker.registration.timeout.ms=-1
server.max.startup.time.ms=-1
sasl.mechanism.controller.protocol=PLAIN
listeners=CONTROLLER://:9093;listener.security.protocol.map=CONTROLLER:SASL_PLAINTEXT
listeners=PLAINTEXT://:9092,PLAINTEXT://:9093
listeners=PLAINTEXT://:9092,plaintext://:9094
replica.lag.time.max.ms=100
replica.fetch.wait.max.ms=0
num.replica.fetchers=0
default.replication.factor=0
min.insync.replicas=0
min.insync.replicas=5
auto.leader.rebalance.enable=maybe
leader.imbalance.check.interval.seconds=0
replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector
replica.selector.class=foo.Bar
broker.rack=
broker.rack=r1
controlled.shutdown.enable=false
"""
# Kafka takes one of the two voters, or an address that leads nowhere.
REFUSED_HERE_ONLY = {
    "controller.quorum.bootstrap.servers=:1",
    "controller.quorum.voters=2@a:9093,2@b:9093",
}
# Names of listeners mean the same in either case everywhere else.
REFUSED_BY_KAFKA_ONLY = {"controller.listener.names=controller", "early.start.listeners=controller"}
# A broker with nothing secured listens on loopback; Kafka listens on every address.
LOOPBACK_BY_DEFAULT = {("broker", "-listeners")}


def changed(base: dict[str, str], changes: str) -> dict[str, str]:
    properties = dict(base)
    for change in filter(None, changes.split(";")):
        key, _, value = change.partition("=")
        if change.startswith("-"):
            properties.pop(change[1:], None)
        else:
            properties[key] = value
    return properties


def text(listeners: tuple[Listener, ...]) -> str:
    return ",".join(f"{each.name} {each.host} {each.port}" for each in listeners)


def verdict(properties: dict[str, str]) -> list[str]:
    try:
        config = BrokerConfig.from_properties(properties)
    except ConfigError as error:
        return ["no", str(error)]
    return [
        "ok",
        text(config.advertised_broker_listeners),
        text(config.advertised_controller_listeners),
        config.inter_broker_listener_name,
    ]


@pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))
def test_the_same_configurations_start() -> None:
    cases = [
        (role, changes, changed(base, changes))
        for role, base in BASES.items()
        for changes in ["", *CHANGES.split()]
    ]
    lines = ["\t".join(f"{key}={value}" for key, value in case[2].items()) for case in cases]
    told = subprocess.run(
        program("StartConfigs.java"),
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    kafkas = [line.split("\t") for line in told.stdout.splitlines()]
    assert len(kafkas) == len(cases) > 300
    differences = {}
    for (role, changes, properties), kafka in zip(cases, kafkas, strict=True):
        ours = verdict(properties)
        if (role, changes) in LOOPBACK_BY_DEFAULT:
            ours[1] = ours[1].replace(" 127.0.0.1 ", "  ")
        if ours[0] == kafka[0] == "no" or ours == kafka:
            continue
        known = (ours[0] == "no" and changes in REFUSED_HERE_ONLY) or (
            kafka[0] == "no" and changes in REFUSED_BY_KAFKA_ONLY
        )
        if not known:
            differences[role, changes] = (ours, kafka)
    assert differences == {}
