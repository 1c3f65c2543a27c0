"""Mirrors: flows into this cluster with heartbeats, lag, checkpoints of groups, and where groups
would continue after a fail-over; and the connectors that copy.

The target's own topics show that there is a mirror. How far it is behind, and where groups would
continue, is known only with the mirror's file (`mirror.file`). Nothing is changed here: groups are
moved by `moldau mirror failover`, once their consumers have been stopped.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from moldau.config.errors import ConfigError
from moldau.http.machine.errors import HttpError
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.mirror.machine.moves import Move
from moldau.mirror.machine.policies import DefaultReplicationPolicy
from moldau.mirror.machine.settings import FlowSettings
from moldau.mirror.moving import move_groups
from moldau.mirror.status import GroupStatus, flow_status, read_checkpoints, read_heartbeats
from moldau.services.console.api.routing import CLUSTER, api, text
from moldau.services.console.backend import Backend, Call
from moldau.services.console.lists import topic_names
from moldau.services.console.machine.errors import missing
from moldau.services.console.mirror_flows import Flows, MirrorFile
from moldau.services.console.remote import Remote

__all__ = ["MirrorHandlers"]

_CHECKPOINTS: Final = re.compile(r"(.+)\.checkpoints\.internal")
_SYNCS: Final = re.compile(r"mm2-offset-syncs\.(.+)\.internal")
_HEARTBEATS: Final = "heartbeats"
_READ_MS: Final = 120_000
_ROWS_MAX: Final = 1_000


class MirrorHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._file = MirrorFile(backend)

    def routes(self) -> list[Route]:
        tag = "mirrors"
        one = f"{CLUSTER}/mirrors/{{source}}"
        return [
            api("GET", f"{CLUSTER}/mirrors", self.list, "Mirrors", tag=tag, timeout_ms=_READ_MS),
            api("GET", one, self.one, "How far a mirror is: topics and groups", tag=tag,
                timeout_ms=_READ_MS),
            api("GET", f"{one}/moves", self.moves, "Where groups would continue after a fail-over",
                tag=tag, timeout_ms=_READ_MS, parameters=(
                    text("group", "only this group"),
                    text("lost", "true: the source is gone, use its last checkpoints"),
                )),
        ]  # fmt: skip

    async def list(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            flows = await self._file.read()
            names = await topic_names(call)
            beats = await _heartbeats(call, names)
            planned = {each.name.source: each for each in flows.of(call.cluster, "target")}
            written = {found[1] for name in names if (found := _CHECKPOINTS.fullmatch(name))}
            sources = written | beats.keys() | {k for k, v in planned.items() if v["enabled"]}
            return {
                "data": [
                    _row(call, each, names, beats.get(each), planned.get(each))
                    for each in sorted(sources)
                ],
                "targets": _targets(call, flows, names),
                "connectors": await _connectors(call),
                "file": self._file.path,
            }

    async def one(self, request: Request) -> dict[str, Any]:
        source = request.path["source"]
        with self._backend.call(request) as call:
            flows = await self._file.read()
            settings = flows.into(call.cluster, source)
            if settings is None:
                return await _without_file(call, source)
            await self._file.admit(call, flows, settings)
            with self._file.clients(request, flows) as clients:
                found = await flow_status(clients[settings.name])
            return {
                "source": source,
                "target": settings.name.target,
                "heartbeat_age_s": found.heartbeat_age_s,
                "topics": [asdict(each) for each in found.topics],
                "groups": _groups(found.checkpoints),
                "error": found.error,
                "file": self._file.path,
                **_kind(settings),
            }

    async def moves(self, request: Request) -> dict[str, Any]:
        """A dry run of `moldau mirror failover`."""
        source, group = request.path["source"], request.text("group")
        is_lost = request.text("lost") == "true"
        with self._backend.call(request) as call:
            flows = await self._file.read()
            settings = flows.into(call.cluster, source)
            if settings is None:
                raise HttpError(
                    409,
                    f"Where groups of {source} would continue is known only with the mirror's "
                    "file: set mirror.file of the console.",
                )
            await self._file.admit(call, flows, settings)
            target = settings.name.target
            with self._file.clients(request, flows) as clients:
                try:
                    found = await move_groups(
                        clients,
                        left=source,
                        reached=target,
                        groups=[group] if group else (),
                        dry_run=True,
                        has_source=not is_lost,
                        wait_s=0.0,
                    )
                except ConfigError as error:
                    raise HttpError(409, str(error)) from None
            words = ["moldau mirror failover", str(self._file.path), "--from", source, "--to"]
            words += [target, *(["--group", group] if group else [])]
            words += ["--without-source"] if is_lost else []
            return {
                "total": len(found.moves),
                "data": [_move(each) for each in found.moves[:_ROWS_MAX]],
                "refused": [
                    {"group": name, "reason": reason}
                    for name, reason in sorted(found.refused.items())
                ],
                "command": " ".join(words),
            }


async def _heartbeats(call: Call, names: Iterable[str]) -> dict[str, float]:
    """How old the newest heartbeat of each source is, in seconds."""
    if _HEARTBEATS not in names:
        return {}
    consumer = {**call.clients.settings("consumer"), "auto.offset.reset": "earliest"}
    found = await read_heartbeats(_HEARTBEATS, consumer, call.admin, None)
    ages: dict[str, float] = {}
    for (source, _), at_ms in found.items():
        age = max(0.0, time.time() - at_ms / 1000)
        ages[source] = min(age, ages.get(source, age))
    return ages


def _row(
    call: Call, source: str, names: Iterable[str], age: float | None, settings: FlowSettings | None
) -> dict[str, Any]:
    facts = call.watcher.snapshot.topics
    copies = sorted(name for name in names if _is_copy(name, source))
    rates = [facts[name].rate or 0.0 for name in copies if name in facts]
    return {
        "source": source,
        "topics": copies,
        "rate": sum(rates),
        "records": sum(facts[name].records for name in copies if name in facts),
        "heartbeat_age_s": age,
        **_kind(settings),
    }


def _kind(settings: FlowSettings | None) -> dict[str, Any]:
    if settings is None:
        return {"enabled": None, "exactly_once": None, "policy": None}
    return {
        "enabled": settings["enabled"],
        "exactly_once": settings.is_exactly_once,
        "policy": settings["replication.policy.class"].rpartition(".")[2],
    }


def _targets(call: Call, flows: Flows, names: Iterable[str]) -> list[dict[str, Any]]:
    """Where this cluster is copied to, and the name of that cluster in the console."""
    found = {each[1] for name in names if (each := _SYNCS.fullmatch(name))}
    outward = {each.name.target for each in flows.of(call.cluster, "source") if each["enabled"]}
    clusters = {alias: flows.cluster(alias) for alias in found | outward}
    return [
        {"target": alias, "cluster": None if cluster is None else cluster.name}
        for alias, cluster in sorted(clusters.items())
    ]


async def _without_file(call: Call, source: str) -> dict[str, Any]:
    """What the target's topics say."""
    names = await topic_names(call)
    beats = await _heartbeats(call, names)
    policy = DefaultReplicationPolicy()
    if source not in beats and policy.checkpoints_topic(source) not in names:
        raise missing("mirror from", source)
    consumer = {**call.clients.settings("consumer"), "auto.offset.reset": "earliest"}
    groups = await read_checkpoints(policy, source, consumer, call.admin)
    copies = sorted(name for name in names if _is_copy(name, source))
    return {
        "source": source,
        "target": None,
        "heartbeat_age_s": beats.get(source),
        "topics": [
            {
                "topic": policy.upstream_topic(name),
                "remote": name,
                "partitions": None,
                "records_behind": None,
                "seconds_behind": None,
            }
            for name in copies
        ],
        "groups": _groups(groups),
        "error": None,
        "file": None,
        **_kind(None),
    }


def _groups(found: Iterable[GroupStatus]) -> list[dict[str, Any]]:
    return [asdict(each) for each in found][:_ROWS_MAX]


def _move(each: Move) -> dict[str, Any]:
    return {
        "group": each.group_id,
        "topic": each.left.topic,
        "partition": each.left.partition,
        "offset": each.left_offset,
        "remote": each.reached.topic,
        "remote_offset": each.to_offset,
        "exact": each.is_exact,
        "behind": each.behind,
    }


def _is_copy(name: str, source: str) -> bool:
    return name.startswith(f"{source}.") and not name.endswith(".internal")


async def _connectors(call: Call) -> list[dict[str, Any]]:
    """Those of Connect that mirror; none if there is no Connect."""
    try:
        found = await Remote(call, "connect.url").ask(
            "GET", "/connectors?expand=status&expand=info"
        )
    except HttpError:
        return []
    return [
        {
            "name": name,
            "class": each["info"]["config"].get("connector.class", ""),
            "state": each["status"]["connector"]["state"],
            "source": each["info"]["config"].get("source.cluster.alias"),
            "target": each["info"]["config"].get("target.cluster.alias"),
        }
        for name, each in sorted(found.items())
        if "Mirror" in each["info"]["config"].get("connector.class", "")
    ]
