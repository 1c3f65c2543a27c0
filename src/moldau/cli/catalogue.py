"""All commands of `moldau`: their names, what each is for, and which module runs it.

Only names are held here: a command's module is imported when it runs, so that `moldau --help` and
a broker's start pay for nothing they do not use. A command also answers to its script's name
(`moldau kafka-topics` is `moldau topics`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["TOOLS", "Tool", "find_tool", "help_listing"]


class Tool(NamedTuple):
    """`script` is Kafka's name without .sh, None where Kafka has no such tool."""

    name: str
    module: str
    help: str
    script: str | None
    group: str


_RUN = "Run brokers"
_TOPICS = "Topics and records"
_GROUPS = "Groups and transactions"
_CLUSTER = "The cluster"
_FILES = "Files on disk"
_MEASURE = "Measure and test"
_SETUP = "Your set-up"


def _tool(group: str, name: str, help_text: str, script: str | None = "", module: str = "") -> Tool:
    if script == "":
        script = f"kafka-{name}"
    path = module or name.replace("-", "_")
    return Tool(name, f"moldau.cli.tools.{path}", help_text, script, group)


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        _tool(_RUN, "start", "start a broker, creating its data directory if needed", None),
        _tool(_RUN, "cluster", "run a cluster on this machine, or query a running one", None),
        _tool(_RUN, "spark", "start, show or stop the Spark that runs pipelines", None),
        _tool(_RUN, "pipelines", "start, stop and watch data pipelines between topics and tables",
              None),
        _tool(_RUN, "server-start", "start a broker from a file; the storage must be formatted"),
        _tool(_RUN, "server-stop", "stop the brokers of this machine"),
        _tool(_RUN, "storage", "format and inspect storage"),
        _tool(_TOPICS, "topics", "create, delete, describe or change topics"),
        _tool(_TOPICS, "console-producer", "send lines of standard input to a topic"),
        _tool(_TOPICS, "console-consumer", "print the records of topics"),
        _tool(_TOPICS, "console-share-consumer", "print the records of topics, as a share group"),
        _tool(_TOPICS, "get-offsets", "look up offsets of partitions, also by time"),
        _tool(_TOPICS, "delete-records", "delete records below given offsets"),
        _tool(_GROUPS, "groups", "list groups of all types"),
        _tool(_GROUPS, "consumer-groups", "list, describe, delete or reset consumer groups"),
        _tool(_GROUPS, "share-groups", "list, describe, delete or reset share groups"),
        _tool(_GROUPS, "streams-groups", "list, describe, delete or reset streams groups"),
        _tool(_GROUPS, "streams-application-reset", "reset a Kafka Streams application"),
        _tool(_GROUPS, "transactions", "list, describe and abort transactions"),
        _tool(_CLUSTER, "configs", "show and change configurations of any entity"),
        _tool(_CLUSTER, "acls", "add, remove and list access rights"),
        _tool(_CLUSTER, "delegation-tokens", "create, renew, expire and describe tokens"),
        _tool(_CLUSTER, "reassign-partitions", "move partitions between brokers and log dirs"),
        _tool(_CLUSTER, "leader-election", "elect leaders of partitions"),
        _tool(_CLUSTER, "kafka-cluster", "show the cluster ID and endpoints, unregister brokers",
              "kafka-cluster", "cluster_tool"),
        _tool(_CLUSTER, "features", "describe and change levels of features"),
        _tool(_CLUSTER, "metadata-quorum", "describe and change the controllers' quorum"),
        _tool(_CLUSTER, "broker-api-versions", "list the API versions that each broker supports"),
        _tool(_CLUSTER, "log-dirs", "show the contents of the brokers' log directories"),
        _tool(_CLUSTER, "client-metrics", "show and change subscriptions to client metrics"),
        _tool(_FILES, "dump-log", "print log segments, indexes and snapshots"),
        _tool(_FILES, "metadata-shell", "browse a snapshot of the cluster's metadata"),
        _tool(_MEASURE, "producer-perf-test", "measure a producer"),
        _tool(_MEASURE, "consumer-perf-test", "measure a consumer"),
        _tool(_MEASURE, "share-consumer-perf-test", "measure share consumers"),
        _tool(_MEASURE, "e2e-latency", "measure end-to-end latency"),
        _tool(_MEASURE, "replica-verification", "compare the replicas of partitions"),
        _tool(_MEASURE, "verifiable-producer", "produce numbers and report every one"),
        _tool(_MEASURE, "verifiable-consumer", "consume and report everything that happens"),
        _tool(_MEASURE, "verifiable-share-consumer", "consume as a share group and report it all"),
        _tool(_SETUP, "doctor", "diagnose this installation and suggest fixes", None),
        _tool(_SETUP, "profile", "name clusters and choose the one that commands use", None),
        _tool(_SETUP, "completion", "print the shell's completion script", None),
    )
}  # fmt: skip

_BY_SCRIPT = {tool.script: tool for tool in TOOLS.values() if tool.script is not None}
# `moldau cluster` starts one; with these words it is Kafka's tool of that name.
_CLUSTER_QUESTIONS = ("cluster-id", "unregister", "list-endpoints")


def find_tool(argv: Sequence[str]) -> Tool | None:
    """The tool that the first words mean, or None."""
    if argv[0] == "cluster" and len(argv) > 1 and argv[1] in _CLUSTER_QUESTIONS:
        return TOOLS["kafka-cluster"]
    return TOOLS.get(argv[0]) or _BY_SCRIPT.get(argv[0])


def help_listing() -> str:
    """Every command with its line, in groups."""
    lines: list[str] = []
    group = ""
    for tool in TOOLS.values():
        if tool.group != group:
            group = tool.group
            lines += ["", f"{group}:"]
        lines.append(f"  {tool.name:<26}{tool.help}")
    return "\n".join(lines[1:])
