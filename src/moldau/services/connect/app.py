"""ConnectWorker: wires one worker, standalone or distributed. Start reading here.

    worker = ConnectWorker(WorkerConfig.of(properties, distributed=True), distributed=True)
    await worker.start()

A request comes in by a route (`api/table.py`) and becomes records of the config store
(`operations.py`); they come back as changes, which the herder turns into starts and stops of
connectors and tasks (`herder.py`, `moldau.connect.runtime.worker`). In a cluster the group decides
which worker that is (`group.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from moldau import __version__
from moldau.client import Admin, KafkaError
from moldau.connect.api import ConnectError
from moldau.connect.machine.config_state import Config
from moldau.connect.machine.ids import State, TaskId
from moldau.connect.machine.protocol import NOTHING, Work
from moldau.connect.machine.source_offsets import SourceOffsets
from moldau.connect.plugins import Plugins
from moldau.connect.runtime.bulk import BulkJob
from moldau.connect.runtime.clients import worker_client
from moldau.connect.runtime.offset_stores import FileOffsets, OffsetStore, TopicOffsets
from moldau.connect.runtime.state_topics import state_log
from moldau.connect.runtime.topic_log import Apply, TopicLog
from moldau.connect.runtime.worker import Runner, Worker
from moldau.connect.runtime.worker_config import WorkerConfig
from moldau.http.application import Application, Service
from moldau.http.authentication import authentication_of
from moldau.http.metrics import Metrics
from moldau.http.server import HttpServer
from moldau.services.connect.api.connectors import ConnectorsApi
from moldau.services.connect.api.plugins import PluginsApi
from moldau.services.connect.api.table import admin_routes, routes
from moldau.services.connect.api.worker import WorkerApi
from moldau.services.connect.config import admin_http_config, advertised_url, http_config
from moldau.services.connect.fencing import Privileges
from moldau.services.connect.group import GroupMember
from moldau.services.connect.herder import Assigned, Herder
from moldau.services.connect.machine.errors import as_http_error
from moldau.services.connect.membership import Alone, Membership
from moldau.services.connect.operations import Operations
from moldau.services.connect.stores import (
    ConfigStore,
    MemoryConfig,
    MemoryStatus,
    StatusStore,
    TopicConfig,
    TopicStatus,
)

__all__ = ["ConnectWorker"]

logger = logging.getLogger(__name__)

_KEY_CHECK_S = 30.0


class ConnectWorker:
    """`start` and `stop` are called once, on the loop that serves. `connectors` are created at the
    start of a standalone worker."""

    def __init__(
        self,
        config: WorkerConfig,
        *,
        distributed: bool,
        connectors: Sequence[Mapping[str, str]] = (),
    ) -> None:
        self.config = config
        self._distributed = distributed
        self._first = connectors
        self._logs: list[TopicLog] = []
        self._cluster_id: str | None = None
        self._ready = False
        self.plugins = Plugins(
            paths=config.values["plugin.path"],
            scan=config.values["plugin.discovery"].lower() != "service_load",
        )
        self.configs: ConfigStore = (
            TopicConfig(self._on_change) if distributed else MemoryConfig(self._on_change)
        )
        self.statuses: StatusStore = TopicStatus() if distributed else MemoryStatus()
        self.worker = Worker(
            config,
            self.plugins,
            self._offset_store(),
            group_id=config.values.get("group.id"),
            on_status=self._on_status,
            on_topic=self._on_topic,
            on_reconfiguration=lambda name: self.herder.on_reconfiguration(name),
            bulk=self._bulk_runner,
        )
        self.privileges = Privileges(self.worker, self.configs)
        self._group: GroupMember | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._alone = Alone("")
        self.herder = Herder(
            self.worker,
            self.configs,
            self.statuses,
            self._alone,
            forward_tasks=self._forward_tasks,
            fence=self.privileges.fence,
            track_topics=config.values["topic.tracking.enable"],
        )
        self.operations = Operations(self.herder, config, self.plugins)
        self._servers = self._make_servers()

    def _make_servers(self) -> list[HttpServer]:
        """The one of `listeners`, and where they are others the one of `admin.listeners`."""
        config = http_config(self.config)
        metrics = Metrics("moldau_connect")
        connectors, plugins = ConnectorsApi(self.operations), PluginsApi(self.operations)
        worker = WorkerApi(
            self.operations,
            cluster_id=lambda: self._cluster_id,
            is_ready=self._is_ready,
            fence=self.privileges.fence_here,
            metrics=metrics,
        )
        service = Service(
            name="connect",
            title="Moldau Connect",
            version=__version__,
            routes=routes(
                connectors, plugins, worker, admin=self.config.values["admin.listeners"] is None
            ),
            description="Connectors between Kafka and other systems.",
            map_error=as_http_error,
        )
        served = [(service, config, metrics)]
        if (admin := admin_http_config(self.config)) is not None:
            own = replace(service, name="connect_admin", routes=tuple(admin_routes(worker)))
            served.append((own, admin, Metrics("moldau_connect_admin")))
        return [
            HttpServer(
                Application(each, http, authentication=authentication_of(http), metrics=counted)
            )
            for each, http, counted in served
        ]

    def _is_ready(self) -> bool:
        return self._ready and (self._group is None or self._group.joined.is_set())

    @property
    def urls(self) -> list[str]:
        return self._servers[0].urls

    @property
    def admin_urls(self) -> list[str]:
        """Where /admin is served."""
        if self.config.values["admin.listeners"] is None:
            return self.urls
        return [url for each in self._servers[1:] for url in each.urls]

    # Stores.

    def _offset_store(self) -> OffsetStore:
        values = self.config.values
        if not self._distributed:
            return FileOffsets(Path(values["offset.storage.file.filename"]))
        offsets = SourceOffsets()
        log = self._log(
            "offset",
            lambda key, value, offset: offsets.replay(key, value),
            partitions=values["offset.storage.partitions"],
        )
        return TopicOffsets(log, offsets)

    def _log(self, kind: str, apply: Apply, *, partitions: int) -> TopicLog:
        log = state_log(self.config, kind, apply, partitions=partitions)
        self._logs.append(log)
        return log

    def _bulk_runner(self, job: BulkJob) -> Runner:
        # Few workers have a bulk sink, and all should start quickly.
        from moldau.services.connect.bulk import BulkRunner

        return BulkRunner(job, self.config.settings.get("spark.deployment"))

    # Events from stores and tasks, in any thread.

    def _on_change(self, change: Any) -> None:
        self.herder.post(change)

    def _on_status(self, id: str | TaskId, state: State, trace: str | None) -> None:
        self.herder.on_status(id, state, trace)

    def _on_topic(self, id: TaskId, topic: str) -> None:
        self.herder.on_topic(id, topic)

    # Life.

    async def start(self) -> None:
        """Raises ConfigError, ConnectError or KafkaError."""
        self._cluster_id = await asyncio.to_thread(self._ask_cluster_id)
        for server in self._servers:
            await server.start()
        url = advertised_url(self.config, self.urls)
        worker_id = urlsplit(url).netloc
        if self._distributed:
            await self._start_distributed(url, worker_id)
        else:
            await self._start_standalone(worker_id)
        self._ready = True

    def _ask_cluster_id(self) -> str | None:
        with Admin(worker_client(self.config.settings, "admin")) as admin:
            try:
                return admin.describe_cluster().cluster_id
            except KafkaError as error:
                servers = ",".join(self.config.values["bootstrap.servers"])
                raise ConnectError(
                    f"The Kafka cluster at {servers} cannot be reached: {error}. Check "
                    "bootstrap.servers"
                ) from error

    async def _start_standalone(self, worker_id: str) -> None:
        self._alone.worker_id = worker_id
        self._alone.on_rejoin = self._assign_everything
        self.herder.start()
        for config in self._first:
            name = config.get("name") or ""
            await self.operations.put_config(name, dict(config), replace=True)

    def _assign_everything(self) -> None:
        wanted = self.herder.all_work()
        held = self.herder.assigned
        if wanted != held:
            self.herder.post(Assigned(held - wanted, wanted - held))

    async def _start_distributed(self, url: str, worker_id: str) -> None:
        configs, statuses = self.configs, self.statuses
        values = self.config.values
        if isinstance(configs, TopicConfig):
            configs.log = self._log("config", configs.apply, partitions=1)
        if isinstance(statuses, TopicStatus):
            statuses.log = self._log(
                "status", statuses.apply, partitions=values["status.storage.partitions"]
            )
        await asyncio.gather(*(asyncio.to_thread(each.start) for each in self._logs))
        if isinstance(configs, TopicConfig):
            configs.started = True
        self._group = GroupMember(
            self.config,
            url,
            worker_id,
            state=lambda: configs.state,
            configured=self.herder.all_work,
            refresh=lambda: asyncio.to_thread(configs.refresh),
            on_work=self._on_work,
            on_leading=self.privileges.renew_key,
        )
        member: Membership = self._group
        self.herder.membership = member
        self.privileges.membership = member
        self.herder.start()
        self._group.start()
        self._renewing = asyncio.get_running_loop().create_task(self._renew_keys())

    async def _renew_keys(self) -> None:
        """A leader that leads for long replaces the session key when it is too old."""
        while True:
            await asyncio.sleep(_KEY_CHECK_S)
            if self._group is not None and self._group.is_leader:
                try:
                    await self.privileges.renew_key()
                except ConnectError as error:
                    logger.warning("the session key is renewed later: %s", error)

    async def _on_work(self, revoked: Work, added: Work) -> None:
        self.herder.post(Assigned(revoked, NOTHING))
        if revoked:
            await self.herder.flush()
        self.herder.post(Assigned(NOTHING, added))

    async def _forward_tasks(self, name: str, configs: list[Config]) -> None:
        await self.privileges.call_leader("POST", f"/connectors/{name}/tasks", configs)

    async def stop(self) -> None:
        for server in self._servers:
            await server.stop()
        if self._renewing is not None:
            self._renewing.cancel()
        await self.herder.stop()
        if self._group is not None:
            await self._group.stop()
        await asyncio.gather(*(asyncio.to_thread(each.stop) for each in self._logs))
