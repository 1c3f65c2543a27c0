"""The balancer: what `moldau balance plan` gives now, carried out and stopped."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from moldau.balance.executing import Progress, carry_out, copied, stop_all
from moldau.balance.machine.model import Constraints, Impossible, Plan
from moldau.balance.machine.planner import plan
from moldau.balance.machine.report import as_document
from moldau.balance.reading import read_cluster
from moldau.client import Admin
from moldau.client.errors import KafkaError
from moldau.http.machine.errors import HttpError
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.console.api.bodies import body_of
from moldau.services.console.api.routing import CLUSTER, api, fields, number, text
from moldau.services.console.backend import Backend, Call

__all__ = ["BalancerHandlers"]

T = TypeVar("T")
logger = logging.getLogger(__name__)
_BATCH: Final = 50
_SECONDS_MAX: Final = 24 * 3600.0
_PLAN_MS: Final = 120_000
_ROWS_MAX: Final = 1_000


class BalancerHandlers:
    """A plan that is carried out runs in a thread, one for each cluster."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._progress: dict[str, Progress | None] = {}
        self._messages: dict[str, str] = {}
        self._stops: dict[str, threading.Event] = {}

    def routes(self) -> list[Route]:
        tag = "balancer"
        return [
            api("GET", f"{CLUSTER}/balancer/plan", self.plan, "What would move, and why", tag=tag,
                parameters=(
                    text("drain", "ids of brokers to empty"),
                    text("add", "ids of brokers that alone receive replicas"),
                    number("throttle", "bytes per second, for the time that it takes"),
                ), timeout_ms=_PLAN_MS),
            api("GET", f"{CLUSTER}/balancer", self.status, "Reassignments in progress", tag=tag),
            api("POST", f"{CLUSTER}/balancer/execute", self.execute, "Carry a plan out", tag=tag,
                body=fields(throttle="integer", drain="string", add="string"),
                timeout_ms=_PLAN_MS),
            api("POST", f"{CLUSTER}/balancer/stop", self.stop, "Cancel what moves", tag=tag,
                body=fields()),
        ]  # fmt: skip

    async def plan(self, request: Request) -> dict[str, Any]:
        limits = _constraints(request.text("drain") or "", request.text("add") or "")
        throttle = _throttle(request.text("throttle"))
        with self._backend.call(request) as call:
            planned = await _with_admin(call, lambda admin: plan(read_cluster(admin), limits))
            found = as_document(planned, throttle)
            return {
                "before": found["before"],
                "after": found["after"],
                "bytes": found["bytesMoved"],
                "seconds": found["secondsAtThrottle"],
                "unmet": found["unmet"],
                "total": len(found["partitions"]),
                "data": found["partitions"][:_ROWS_MAX],
            }

    async def status(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            # The page asks every two seconds, and mostly nothing moves.
            is_moving = await call.admin.list_partition_reassignments()
            moving = await _with_admin(call, copied) if is_moving else []
            progress = self._progress.get(call.cluster.name)
            return {
                "data": [each._asdict() for each in moving],
                "running": call.cluster.name in self._stops,
                "progress": None
                if progress is None
                else {"done": progress.done, "moving": progress.moving, "total": progress.total},
                "message": self._messages.get(call.cluster.name),
            }

    async def execute(self, request: Request) -> dict[str, Any]:
        body = await body_of(request)
        throttle = body.optional_integer("throttle")
        if throttle is not None and throttle <= 0:
            raise HttpError(400, f"The throttle must be greater than 0, not {throttle}.")
        limits = _constraints(body.text("drain", ""), body.text("add", ""))
        details = {
            "throttle": throttle, "drain": sorted(limits.drained), "add": sorted(limits.added)
        }  # fmt: skip
        async with self._backend.change(request, "balance", "cluster", details) as call:
            name = call.cluster.name
            if name in self._stops:
                raise HttpError(409, "A plan is being carried out.")
            planned = await _with_admin(call, lambda admin: plan(read_cluster(admin), limits))
            if not planned.reassignments:
                return {"moves": 0}
            stop = self._stops[name] = threading.Event()
            self._progress[name] = Progress(0, 0, len(planned.reassignments))
            settings = call.clients.settings("admin")
            threading.Thread(
                target=self._carry_out, args=(name, settings, planned, throttle, stop), daemon=True
            ).start()
            return {"moves": len(planned.reassignments)}

    async def stop(self, request: Request) -> dict[str, Any]:
        async with self._backend.change(request, "stop-balance", "cluster") as call:
            running = self._stops.get(call.cluster.name)
            if running is not None:
                running.set()
                return {"cancelled": None}
            return {"cancelled": await _with_admin(call, stop_all)}

    def _carry_out(
        self,
        name: str,
        settings: dict[str, Any],
        planned: Plan,
        throttle: int | None,
        stop: threading.Event,
    ) -> None:
        def report(progress: Progress) -> None:
            self._progress[name] = progress

        try:
            with Admin(settings) as admin:
                outcome = carry_out(
                    admin,
                    planned.reassignments,
                    throttle=throttle,
                    batch=_BATCH,
                    seconds_max=_SECONDS_MAX,
                    stop=stop,
                    report=report,
                )
            self._messages[name] = (
                f"{outcome.done} partitions are done, {outcome.cancelled} were cancelled, "
                f"{outcome.not_started} were not started, {len(outcome.skipped)} skipped."
            )
        except (KafkaError, Impossible) as error:
            self._messages[name] = f"The plan was not carried out: {error}"
            logger.warning("balancing %s: %s", name, error)
        finally:
            self._progress[name] = None
            del self._stops[name]


async def _with_admin(call: Call, act: Callable[[Admin], T]) -> T:
    """With a blocking client of the user's own."""
    settings = call.clients.settings("admin")

    def run() -> T:
        with Admin(settings) as admin:
            return act(admin)

    try:
        return await asyncio.to_thread(run)
    except Impossible as error:
        raise HttpError(409, str(error)) from None


def _constraints(drained: str, added: str) -> Constraints:
    return Constraints(drained=_brokers(drained), added=_brokers(added))


def _throttle(given: str | None) -> int | None:
    if not given:
        return None
    if not given.isdecimal() or int(given) == 0:
        raise HttpError(400, f"The throttle must be a number of bytes per second, not {given}.")
    return int(given)


def _brokers(listed: str) -> frozenset[int]:
    words = listed.replace(",", " ").split()
    if not all(word.isdecimal() for word in words):
        raise HttpError(400, f"{listed} is not a list of broker IDs.")
    return frozenset(map(int, words))
