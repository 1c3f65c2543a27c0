"""Lineage: collects what each service knows, with the rights of the user; the rest is in machine/.

A service that cannot be reached is named in the answer, and the graph is drawn without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final
from urllib.parse import quote

from moldau.client import TopicPartition
from moldau.client.errors import KafkaError
from moldau.http.machine.errors import HttpError
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.pipelines.registry import TOPIC
from moldau.services.console.api.pipelines import pipelines_of, topics_of
from moldau.services.console.api.routing import CLUSTER, api, text
from moldau.services.console.api.streams import streams_groups
from moldau.services.console.backend import Backend, Call
from moldau.services.console.lists import topic_names
from moldau.services.console.machine.lineage import Flow, Known, lineage
from moldau.services.console.remote import Remote

__all__ = ["LineageHandlers"]

#: Of more partitions the producers are not asked for: a page must not load the cluster.
_PARTITIONS_MAX: Final = 2_000
#: Where Connect keeps its state by default.
_STORAGE: Final = frozenset({"connect-configs", "connect-offsets", "connect-status"})
_QUERIES_MAX: Final = 200
_KSQL: Final = "application/vnd.ksql.v1+json"


class LineageHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        return [
            api("GET", f"{CLUSTER}/lineage", self.show, "What feeds what, as a graph",
                tag="lineage",
                parameters=(text("around", "topic:NAME or KIND:NAME"),
                            text("internal", "true to show internal topics"))),
        ]  # fmt: skip

    async def show(self, request: Request) -> dict[str, Any]:
        internal = request.text("internal") == "true"
        with self._backend.call(request) as call:
            names = await topic_names(call)
            snapshot = call.watcher.snapshot
            topics = {
                name: snapshot.topics[name].rate if name in snapshot.topics else None
                for name, is_internal in names.items()
                if internal or not (is_internal or name.startswith("_") or name in _STORAGE)
            }
            problems: list[str] = []
            flows = await asyncio.gather(
                _known("Connect", _connectors(call), problems),
                _known("SQL server", _queries(call), problems),
                _known("pipelines", self._pipelines(call), problems),
                _known("streams groups", _streams(call), problems),
            )
            producers, nameless = await _known_producers(call, topics, problems)
            groups = {
                group: {one.place[0] for one in lags} for group, lags in snapshot.lags.items()
            }
            notes = {
                group: f"lag {sum(one.records for one in lags):,}"
                for group, lags in snapshot.lags.items()
            }
            known = Known(
                topics, [one for each in flows for one in each], groups, notes, producers, nameless
            )
            return {**lineage(known, around=request.text("around") or ""), "problems": problems}

    async def _pipelines(self, call: Call) -> list[Flow]:
        if TOPIC not in await topic_names(call):
            return []
        found = await pipelines_of(self._backend, call, lambda known: known.list())
        return [
            Flow(
                "pipeline",
                each.name,
                tuple(topics_of(each.definition, "source", "sources")),
                tuple(topics_of(each.definition, "sink", "sinks", "dead_letter")),
                f"pipeline, {str(each.state).lower()}",
                f"/pipelines/{each.name}",
                (each.name,),
            )
            for each in found
        ]


async def _known(what: str, flows: Awaitable[list[Flow]], problems: list[str]) -> list[Flow]:
    try:
        return await flows
    except (HttpError, KafkaError) as error:
        problems.append(f"{what}: {error}")
        return []


async def _connectors(call: Call) -> list[Flow]:
    if call.cluster.service_url("connect.url") is None:
        return []
    connect = Remote(call, "connect.url")
    found = await connect.ask("GET", "/connectors?expand=status&expand=info")
    flows = []
    for name, each in found.items():
        active = await connect.ask("GET", f"/connectors/{quote(name, safe='')}/topics")
        topics = tuple(next(iter(active.values()))["topics"])
        is_sink = each["info"].get("type") == "sink"
        if is_sink:
            # Those that it is to read: one that has failed has not used any.
            listed = each["info"]["config"].get("topics", "").split(",")
            topics = tuple(dict.fromkeys((*topics, *(one.strip() for one in listed))))
        flows.append(
            Flow(
                "connector",
                name,
                topics if is_sink else (),
                () if is_sink else topics,
                f"{each['info'].get('type')}, {_state(each['status'])}",
                f"/connectors/{name}",
                (f"connect-{name}", name),
            )
        )
    return flows


def _state(status: dict[str, Any]) -> str:
    """That of the connector, unless one of its tasks has failed."""
    states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
    return "failed" if "FAILED" in states else str(states[0]).lower()


async def _queries(call: Call) -> list[Flow]:
    if call.cluster.service_url("sql.url") is None:
        return []
    server = Remote(call, "sql.url")
    streams, tables, listed = await _asked(server, "SHOW STREAMS; SHOW TABLES; SHOW QUERIES;")
    ids = [each["id"] for each in listed["queries"] if each["queryType"] == "PERSISTENT"]
    described = await _asked(server, "".join(f"EXPLAIN {one};" for one in ids[:_QUERIES_MAX]))
    topics = {each["name"]: each["topic"] for each in (*streams["streams"], *tables["tables"])}
    service = await server.ask("GET", "/info")
    service_id = service["KsqlServerInfo"]["ksqlServiceId"]
    return [
        Flow(
            "query",
            each["id"],
            tuple(topics[name] for name in each["sources"] if name in topics),
            tuple(topics.get(name, name) for name in each["sinks"]),
            f"query, {str(each.get('state') or 'running').lower()}",
            f"/sql/{each['id']}",
            (f"_confluent-ksql-{service_id}query_{each['id']}",),
        )
        for each in (one["queryDescription"] for one in described)
    ]


async def _asked(server: Remote, statements: str) -> list[Any]:
    if not statements:
        return []
    body = {"ksql": statements, "streamsProperties": {}}
    found: list[Any] = await server.ask("POST", "/ksql", body, media_type=_KSQL)
    return found


async def _streams(call: Call) -> list[Flow]:
    return [
        Flow(
            "streams",
            name,
            tuple(
                topic
                for one in each.subtopologies
                for topic in (*one.source_topics, *one.repartition_source_topics)
            ),
            tuple(topic for one in each.subtopologies for topic in one.repartition_sink_topics),
            f"streams, {str(each.group_state.value).lower()}",
            f"/streams/{name}",
            (name,),
        )
        for name, each in (await streams_groups(call)).items()
    ]


async def _known_producers(
    call: Call, topics: dict[str, float | None], problems: list[str]
) -> tuple[dict[str, set[str]], dict[str, int]]:
    """Topics by transactional id, and how many other producers each topic has."""
    facts = call.watcher.snapshot.topics
    partitions = [
        TopicPartition(name, number)
        for name in sorted(topics)
        if name in facts
        for number in range(facts[name].partitions)
    ]
    if len(partitions) > _PARTITIONS_MAX:
        problems.append(f"producers: not asked for {len(partitions)} partitions")
        return {}, {}
    if not partitions:
        return {}, {}
    try:
        described = await call.admin.describe_producers(partitions, check=False)
        transactions = await call.admin.list_transactions(check=False)
    except KafkaError as error:
        problems.append(f"producers: {error}")
        return {}, {}
    names = {each.producer_id: each.transactional_id for each in transactions}
    found: dict[str, set[str]] = {}
    others: dict[str, set[int]] = {}
    for partition, state in described.values_by_key.items():
        for each in state.active_producers:
            if each.producer_id in names:
                found.setdefault(names[each.producer_id], set()).add(partition.topic)
            else:
                others.setdefault(partition.topic, set()).add(each.producer_id)
    return found, {topic: len(ids) for topic, ids in others.items()}
