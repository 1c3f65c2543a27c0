"""Clusters: the list, one cluster's state, its charts and its metadata quorum."""

from __future__ import annotations

import asyncio
from typing import Any

from moldau.client.admin import ReplicaState
from moldau.client.errors import KafkaError
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.console.api.routing import CLUSTER, api, number
from moldau.services.console.backend import Backend, Call

__all__ = ["ClusterHandlers"]

ASK_S = 5.0


class ClusterHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        tag = "clusters"
        return [
            api("GET", "/clusters", self.list, "All clusters with their state", tag=tag),
            api("GET", CLUSTER, self.show, "One cluster", tag=tag),
            api("GET", f"{CLUSTER}/series", self.series, "The numbers of the charts", tag=tag,
                parameters=(number("since", "only points after this time in milliseconds"),)),
            api("GET", f"{CLUSTER}/quorum", self.quorum, "Controllers and the metadata quorum",
                tag=tag),
        ]  # fmt: skip

    async def list(self, request: Request) -> dict[str, Any]:
        async def one(name: str) -> dict[str, Any]:
            with self._backend.clients.of(request.principal, name) as clients:
                found: dict[str, Any] = {
                    "name": name,
                    "bootstrap_servers": list(clients.cluster.bootstrap_servers),
                    "services": clients.cluster.services,
                }
                try:
                    described = await clients.admin.describe_cluster(timeout=ASK_S)
                except KafkaError as error:
                    return {**found, "error": str(error)}
            return {
                **found,
                "id": described.cluster_id,
                "brokers": len(described.nodes),
                **self._counts(name),
            }

        names = self._backend.config.clusters
        return {"data": await asyncio.gather(*(one(name) for name in names))}

    async def show(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            described, groups = await asyncio.gather(
                call.admin.describe_cluster(include_authorized_operations=True),
                call.admin.list_groups(check=False),
            )
            features = await _features(call)
            operations = described.authorized_operations
            return {
                "name": call.cluster.name,
                "id": described.cluster_id,
                "controller": None if described.controller is None else described.controller.id,
                "brokers": len(described.nodes),
                "groups": len(groups),
                "features": features,
                "services": call.cluster.services,
                "operations": sorted(each.name for each in operations or ()),
                **self._counts(call.cluster.name),
            }

    async def series(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            # Also asks the broker: who may not see the cluster does not see its numbers.
            if request.principal.secret is not None:
                await call.admin.describe_cluster()
            since_ms = request.number("since", 0, kind="long") or 0
            return {
                "series": call.watcher.series.since(since_ms),
                "error": call.watcher.snapshot.error,
            }

    async def quorum(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            found = await call.admin.describe_metadata_quorum()

            def shown(each: ReplicaState, role: str) -> dict[str, Any]:
                node = found.nodes.get(each.replica_id)
                endpoints = [] if node is None else node.endpoints
                return {
                    "id": each.replica_id,
                    "role": "leader" if each.replica_id == found.leader_id else role,
                    "log_end_offset": each.log_end_offset,
                    "lag": max(0, found.high_watermark - each.log_end_offset),
                    "last_fetch_ms": each.last_fetch_timestamp,
                    "last_caught_up_ms": each.last_caught_up_timestamp,
                    "endpoints": [f"{end.listener}://{end.host}:{end.port}" for end in endpoints],
                }

            return {
                "leader": found.leader_id,
                "epoch": found.leader_epoch,
                "high_watermark": found.high_watermark,
                "data": [shown(each, "voter") for each in found.voters]
                + [shown(each, "observer") for each in found.observers],
            }

    def _counts(self, name: str) -> dict[str, Any]:
        watcher = self._backend.watchers[name]
        names = ("topics", "partitions", "under_replicated", "offline", "bytes", "lag",
                 "records_per_second")  # fmt: skip
        found = {each: watcher.series.latest(each) for each in names}
        return {**found, "read_ms": watcher.snapshot.time_ms, "reading": watcher.snapshot.error}


async def _features(call: Call) -> dict[str, str]:
    try:
        found = await call.admin.describe_features()
    except KafkaError:
        return {}
    features = {
        name: str(each.max_version_level) for name, each in found.finalized_features.items()
    }
    return dict(sorted(features.items()))
