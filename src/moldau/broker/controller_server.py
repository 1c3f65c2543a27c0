"""The controller's part of a node: its listeners, and its registration with the active one.

The quorum itself and the decisions of the active controller run in `MetadataShell`; this part makes
them reachable.
"""

from __future__ import annotations

from moldau.broker.controller_registration import ControllerRegistrationManager
from moldau.broker.controller_table import ControllerParts, controller_routes
from moldau.broker.handlers.envelope import EnvelopeHandler
from moldau.broker.metadata.broker_watch import BrokerWatch
from moldau.broker.network.dispatcher import Dispatcher
from moldau.broker.network.routes import Route
from moldau.broker.shared import Shared, endpoints_of
from moldau.wire.apis import ApiKey
from moldau.wire.uuids import random_uuid


class ControllerServer:
    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        config = shared.config
        self._listeners = tuple(each.name for each in config.controller_listeners)
        environment = shared.environment
        self._watch = BrokerWatch(
            shared.metadata, environment.transport, environment.clock, node_id=shared.node_id
        )
        self._requests = self._dispatcher()
        self._channel = shared.controller_channel()
        self._registration = ControllerRegistrationManager(
            node_id=shared.node_id,
            incarnation_id=random_uuid(environment.random_bytes(16)),
            endpoints=endpoints_of(config.advertised_controller_listeners, environment),
            controller=self._channel,
            clock=environment.clock,
        )

    def _dispatcher(self) -> Dispatcher:
        shared = self._shared
        routes = controller_routes(
            ControllerParts(
                cluster_id=shared.cluster_id,
                node_id=shared.node_id,
                config=lambda: shared.config,
                configs=shared.configs,
                metadata=shared.metadata,
                heard=self._watch.heard,
                loggers=shared.loggers,
                feature_levels=shared.feature_levels,
                elapsed_ms=shared.environment.clock.elapsed_ms,
            )
        )
        # A request in an envelope is handled like one without.
        inside = Dispatcher(dict(routes))
        routes[ApiKey.ENVELOPE] = Route(EnvelopeHandler(inside.dispatch).handle)
        return Dispatcher(routes)

    async def start(self) -> None:
        for name in self._listeners:
            self._shared.transport.serve(name, self._requests)
        await self._shared.environment.network.start(self._requests, self._listeners)
        self._shared.metadata.subscribe(self._registration.apply)
        self._watch.start()

    async def stop(self) -> None:
        """Register no more; requests are answered until the network stops."""
        self._registration.close()
        self._watch.close()
        self._channel.close()

    async def finish(self) -> None:
        """The network has stopped."""
        await self._requests.stop()
