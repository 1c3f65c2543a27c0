"""All commands of `moldau`: their names, what each is for, and which module runs it.

Only names are held here: a command's module is imported when it runs, so that `moldau --help` and
a broker's start load nothing they do not use. The module of `moldau get-offsets` is
`get_offsets` in its family's package. A command can also be called by its script's name (`moldau
kafka-topics` is `moldau topics`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["TOOLS", "Tool", "find_tool", "help_listing"]


class Tool(NamedTuple):
    """`script` is Kafka's name without .sh, None where Kafka has no such tool."""

    name: str
    module: str
    help: str
    script: str | None
    group: str
    #: Confluent's scripts have no suffix.
    suffix: str = ".sh"


class _Family(NamedTuple):
    """Commands whose modules are in one package, under one title in the list of commands."""

    title: str
    package: str
    tools: tuple[tuple[str, str], ...]
    """Names and descriptions."""
    without_script: tuple[str, ...] = ()
    """Those that Kafka does not have."""
    of_confluent: tuple[str, ...] = ()
    """Those that Confluent has."""


_FAMILIES = (
    _Family(
        "Run the platform",
        "platform",
        (
            ("up", "run the whole platform on this machine: a broker and all services"),
            ("status", "show the services that `moldau up` runs"),
            ("stop", "stop what `moldau up` runs"),
            ("logs", "print the log of a service that `moldau up` runs"),
            ("destroy", "stop the platform of `moldau up` and delete its data"),
        ),
        without_script=("up", "status", "stop", "logs", "destroy"),
    ),
    _Family(
        "Run brokers",
        "brokers",
        (
            ("start", "start a broker, creating its data directory if needed"),
            ("cluster", "run a cluster on this machine, or query a running one"),
            ("server-start", "start a broker from a file; the storage must be formatted"),
            ("server-stop", "stop the brokers of this machine"),
            ("storage", "format and inspect storage"),
        ),
        without_script=("start", "cluster"),
    ),
    _Family(
        "Run services",
        "services",
        (
            ("connect", "run Connect workers, and manage their connectors"),
            ("registry", "run the Schema Registry"),
            ("rest", "run the REST Proxy: Kafka over HTTP"),
            ("mqtt", "run the MQTT proxy: devices publish to topics and subscribe to them"),
            ("sql", "run ksqlDB's language over topics: a server and its shell"),
            ("mirror", "copy topics and groups between clusters, and move groups over"),
            ("console", "run the Control Center: the platform in a browser"),
        ),
        without_script=("connect", "registry", "rest", "mqtt", "sql", "mirror", "console"),
    ),
    _Family(
        "Metrics and monitoring",
        "monitoring",
        (
            ("metrics", "list, watch and chart the metrics of brokers and services"),
            ("monitor", "watch lag, objectives and a canary, and send alerts"),
        ),
        without_script=("metrics", "monitor"),
    ),
    _Family(
        "Run data pipelines",
        "pipelines",
        (
            ("pipelines", "start, stop and watch data pipelines between topics and tables"),
            ("spark", "start, show or stop the Spark that runs pipelines"),
        ),
        without_script=("pipelines", "spark"),
    ),
    _Family(
        "Run stream applications",
        "streams",
        (("streams", "run applications of moldau.streams, and show those of a cluster"),),
        without_script=("streams",),
    ),
    _Family(
        "Topics",
        "topics",
        (
            ("topics", "create, delete, describe or change topics"),
            ("get-offsets", "look up offsets of partitions, also by time"),
            ("delete-records", "delete records below given offsets"),
        ),
    ),
    _Family(
        "Read and write records",
        "console",
        (
            ("console-producer", "send lines of standard input to a topic"),
            ("console-consumer", "print the records of topics"),
            ("console-share-consumer", "print the records of topics, as a share group"),
            ("avro-console-producer", "send lines of JSON as Avro, with a schema"),
            ("avro-console-consumer", "print Avro records as JSON"),
            ("json-schema-console-producer", "send lines of JSON that fit a JSON Schema"),
            ("json-schema-console-consumer", "print records with a JSON Schema"),
            ("protobuf-console-producer", "send lines of JSON as Protobuf, with a schema"),
            ("protobuf-console-consumer", "print Protobuf records as JSON"),
        ),
        of_confluent=tuple(
            f"{format}-console-{side}"
            for format in ("avro", "json-schema", "protobuf")
            for side in ("producer", "consumer")
        ),
    ),
    _Family(
        "Schemas",
        "schemas",
        (("schemas", "list, show, compare, register, check and delete schemas of a registry"),),
        without_script=("schemas",),
    ),
    _Family(
        "Groups and transactions",
        "groups",
        (
            ("groups", "list groups of all types"),
            ("consumer-groups", "list, describe, delete or reset consumer groups"),
            ("share-groups", "list, describe, delete or reset share groups"),
            ("streams-groups", "list, describe, delete or reset streams groups"),
            ("streams-application-reset", "reset a Kafka Streams application"),
            ("transactions", "list, describe and abort transactions"),
        ),
    ),
    _Family(
        "Cluster and configuration",
        "admin",
        (
            ("configs", "show and change configurations of any entity"),
            ("client-metrics", "show and change subscriptions to client metrics"),
            ("kafka-cluster", "show the cluster ID and endpoints, unregister brokers"),
            ("features", "describe and change levels of features"),
            ("metadata-quorum", "describe and change the controllers' quorum"),
            ("broker-api-versions", "list the API versions that each broker supports"),
            ("log-dirs", "show the contents of the brokers' log directories"),
        ),
    ),
    _Family(
        "Replicas",
        "replicas",
        (
            ("reassign-partitions", "move partitions between brokers and log directories"),
            ("leader-election", "elect leaders of partitions"),
            ("replica-verification", "compare the replicas of partitions"),
            ("balance", "spread load over the brokers, fill a new one or empty one"),
        ),
        without_script=("balance",),
    ),
    _Family(
        "Security",
        "security",
        (
            ("security", "make certificates, users and ACLs for a cluster on this machine"),
            ("acls", "add, remove and list access control lists"),
            ("delegation-tokens", "create, renew, expire and describe delegation tokens"),
        ),
        without_script=("security",),
    ),
    _Family(
        "Files on disk",
        "files",
        (
            ("dump-log", "print log segments, indexes and snapshots"),
            ("metadata-shell", "browse a snapshot of the cluster's metadata"),
        ),
    ),
    _Family(
        "Performance",
        "perf",
        (
            ("producer-perf-test", "measure a producer"),
            ("consumer-perf-test", "measure a consumer"),
            ("share-consumer-perf-test", "measure share consumers"),
            ("e2e-latency", "measure end-to-end latency"),
        ),
    ),
    _Family(
        "Clients for system tests",
        "verifiable",
        (
            ("verifiable-producer", "produce numbers and report each one as JSON"),
            ("verifiable-consumer", "consume and report every event as JSON"),
            ("verifiable-share-consumer", "consume as a share group and report events as JSON"),
        ),
    ),
    _Family(
        "Learn",
        "learning",
        (("learn", "a guided course: exercises on your own broker, set and checked"),),
        without_script=("learn",),
    ),
    _Family(
        "This installation",
        "setup",
        (
            ("doctor", "diagnose this installation and suggest fixes"),
            ("profile", "name clusters and choose the one that commands use"),
            ("completion", "print the shell's completion script"),
        ),
        without_script=("doctor", "profile", "completion"),
    ),
)


def _tools_of(family: _Family) -> Iterator[Tool]:
    for name, text in family.tools:
        script = None if name in family.without_script else f"kafka-{name.removeprefix('kafka-')}"
        module = f"moldau.cli.{family.package}.{name.replace('-', '_')}"
        suffix = "" if name in family.of_confluent else ".sh"
        yield Tool(name, module, text, script, family.title, suffix)


TOOLS: dict[str, Tool] = {tool.name: tool for family in _FAMILIES for tool in _tools_of(family)}

_BY_SCRIPT = {tool.script: tool for tool in TOOLS.values() if tool.script is not None}
# `moldau cluster` starts one; with these words it is Kafka's tool of that name.
_CLUSTER_QUESTIONS = ("cluster-id", "unregister", "list-endpoints")


def find_tool(argv: Sequence[str]) -> Tool | None:
    """The tool that the first words mean, or None."""
    if argv[0] == "cluster" and len(argv) > 1 and argv[1] in _CLUSTER_QUESTIONS:
        return TOOLS["kafka-cluster"]
    return TOOLS.get(argv[0]) or _BY_SCRIPT.get(argv[0])


def help_listing() -> str:
    """Every command with its description, by family."""
    lines: list[str] = []
    group = ""
    for tool in TOOLS.values():
        if tool.group != group:
            group = tool.group
            lines += ["", f"{group}:"]
        lines.append(f"  {tool.name:<29}{tool.help}")
    return "\n".join(lines[1:])
