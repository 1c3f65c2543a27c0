"""Brings an operation on many things to its end: who is asked what, how often, and for how long.

Every key of an operation is asked for at the node that answers for it, all nodes at the same time,
and asked for again after a pause while its error is one that passes. Invariants: each key
ends with one value or one error; nothing outlives the operation's timeout; a key that ran out of
time has a KafkaTimeoutError that names the last error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from moldau.client.admin.routes import Located, NodeUnknownError, Route, refuse_controllers
from moldau.client.cluster import ClusterClient, api_of
from moldau.client.deadline import Deadline
from moldau.client.errors import (
    KafkaError,
    KafkaTimeoutError,
    ThrottlingQuotaExceededError,
    UnknownServerError,
    UnsupportedVersionError,
    error_for,
)
from moldau.client.results import Results
from moldau.client.topics import Node
from moldau.clock import pause
from moldau.peers.channel import UnsupportedVersion
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message

__all__ = ["Answer", "Ask", "Call", "Driver"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

NO_CODES: frozenset[ErrorCode] = frozenset()


class Call:
    """One node to ask, within the time that is left."""

    __slots__ = ("_cluster", "_deadline", "node")

    def __init__(self, cluster: ClusterClient, node: Node | None, deadline: Deadline) -> None:
        self._cluster = cluster
        self._deadline = deadline
        #: None where the first that can be reached is asked.
        self.node = node

    @property
    def timeout_ms(self) -> int:
        """What the node may take, for requests that say so."""
        return min(self._cluster.settings.request_timeout_ms, max(1, self._deadline.left_ms()))

    async def __call__(self, request: Message, *, max_version: int | None = None) -> Any:
        """The response; raises KafkaError."""
        timeout_ms = self.timeout_ms
        if self.node is None:
            return await self._cluster.call_any(
                request, timeout_ms=timeout_ms, max_version=max_version
            )
        return await self._cluster.call(
            self.node, request, timeout_ms=timeout_ms, max_version=max_version
        )

    async def serves(self, request: Message, version: int) -> bool:
        """Whether the node serves a request in this version."""
        if self.node is None:
            return True
        versions = await self._cluster.versions(self.node, timeout_ms=self.timeout_ms)
        try:
            return versions.choose(api_of(request)) >= version
        except UnsupportedVersion:
            return False


class Answer(Generic[K, V]):
    """What one response says of the keys it was asked for."""

    __slots__ = ("errors", "raised", "values")

    def __init__(self) -> None:
        self.values: dict[K, V] = {}
        self.errors: dict[K, KafkaError] = {}
        #: Keys that a whole call failed for, so that not they are to blame.
        self.raised: set[K] = set()

    @classmethod
    def of_failure(cls, keys: Iterable[K], error: KafkaError) -> Answer[K, V]:
        """No response at all, or one that is an error as a whole."""
        answer = cls()
        answer.errors = dict.fromkeys(keys, error)
        answer.raised.update(answer.errors)
        return answer

    def put(self, key: K, value: V) -> None:
        self.values[key] = value

    def fail(self, key: K, code: int, message: str | None = None) -> None:
        self.errors[key] = error_for(code, message)

    def settle(self, key: K, code: int, message: str | None, value: V) -> None:
        """The value, unless the code is an error's."""
        if code == ErrorCode.NONE:
            self.values[key] = value
        else:
            self.errors[key] = error_for(code, message)

    def fail_all(self, keys: Iterable[K], code: int, message: str | None = None) -> None:
        for key in keys:
            self.fail(key, code, message)


Ask = Callable[[Call, Sequence[K]], Awaitable[Answer[K, V]]]


class Driver:
    """Runs operations over the calls of a ClusterClient."""

    def __init__(
        self,
        cluster: ClusterClient,
        *,
        timeout_ms: int,
        retries: int,
        on_use: Callable[[], None] = lambda: None,
    ) -> None:
        self.cluster = cluster
        self._on_use = on_use
        self._timeout_ms = timeout_ms
        self._retries = retries

    def deadline(self, timeout: float | None) -> Deadline:
        """From the caller's seconds, or `default.api.timeout.ms`."""
        timeout_ms = self._timeout_ms if timeout is None else max(0, round(timeout * 1000))
        return Deadline(self.cluster.clock, timeout_ms)

    async def run(
        self,
        what: str,
        keys: Iterable[K],
        route: Route[K],
        ask: Ask[K, V],
        *,
        deadline: Deadline,
        retried: frozenset[ErrorCode] = NO_CODES,
        refused: Mapping[K, KafkaError] | None = None,
    ) -> Results[K, V]:
        """What became of every key. `refused` are those that need not be asked for."""
        errors: dict[K, KafkaError] = dict(refused or {})
        values: dict[K, V] = {}
        order = {key: index for index, key in enumerate(dict.fromkeys(keys))}
        pending = [key for key in order if key not in errors]
        if pending:
            refuse_controllers(route, self.cluster, what)
            self._on_use()
        again_codes = route.retried | retried
        reasons: dict[K, KafkaError] = {}
        attempts = 0
        while pending:
            attempts += 1
            answer = await self._attempt(what, route, pending, ask, deadline)
            values.update(answer.values)
            retry: dict[K, KafkaError] = {}
            for key, error in answer.errors.items():
                if _passes(error, again_codes, key in answer.raised):
                    retry[key] = error
                    # That the time was over says less than what it was spent on.
                    if key not in reasons or not isinstance(error, KafkaTimeoutError):
                        reasons[key] = error
                else:
                    errors[key] = error
            if not retry:
                break
            delay_ms = self.cluster.backoff.delay_ms(attempts, self.cluster.random)
            if attempts > self._retries or deadline.left_ms() <= delay_ms:
                for key in retry:
                    errors[key] = _gave_up(what, deadline, reasons[key])
                break
            for key, error in retry.items():
                route.failed(self.cluster, key, error)
            await pause(self.cluster.clock, delay_ms)
            pending = list(retry)
        return Results(
            dict(sorted(values.items(), key=lambda item: order[item[0]])),
            dict(sorted(errors.items(), key=lambda item: order[item[0]])),
        )

    async def run_one(
        self,
        what: str,
        route: Route[None],
        ask: Callable[[Call], Awaitable[V]],
        *,
        deadline: Deadline,
        retried: frozenset[ErrorCode] = NO_CODES,
    ) -> V:
        """The value of an operation on the whole cluster; `ask` may raise."""

        async def asked(call: Call, keys: Sequence[None]) -> Answer[None, V]:
            answer: Answer[None, V] = Answer()
            answer.put(None, await ask(call))
            return answer

        results = await self.run(what, [None], route, asked, deadline=deadline, retried=retried)
        return results.check()[None]

    async def _attempt(
        self, what: str, route: Route[K], keys: Sequence[K], ask: Ask[K, V], deadline: Deadline
    ) -> Answer[K, V]:
        whole: Answer[K, V] = Answer()
        try:
            located = await self._locate(route, keys, deadline)
        except KafkaError as error:
            return Answer.of_failure(keys, error)
        whole.errors.update(located.errors)
        parts = [
            self._ask_node(what, node, node_keys, ask, deadline)
            for node, node_keys in located.nodes.items()
        ]
        # A task of its own for a single call would cost its caller three turns of the loop.
        answers = [await parts[0]] if len(parts) == 1 else await asyncio.gather(*parts)
        for part in answers:
            whole.values.update(part.values)
            whole.errors.update(part.errors)
            whole.raised |= part.raised
        return whole

    async def _locate(self, route: Route[K], keys: Sequence[K], deadline: Deadline) -> Located[K]:
        try:
            async with asyncio.timeout(max(0.001, deadline.left_ms() / 1000)):
                return await route.locate(self.cluster, keys)
        except TimeoutError as error:
            if isinstance(error, KafkaError):
                raise
            raise KafkaTimeoutError("the node to ask was not found in time") from error

    async def _ask_node(
        self, what: str, node: Node | None, keys: Sequence[K], ask: Ask[K, V], deadline: Deadline
    ) -> Answer[K, V]:
        try:
            answer = await ask(Call(self.cluster, node, deadline), keys)
        except KafkaError as error:
            return Answer.of_failure(keys, error)
        wanted = set(keys)
        for key in keys:
            if key not in answer.values and key not in answer.errors:
                problem = f"{what}: the response does not contain {key}"
                answer.errors[key] = UnknownServerError(problem)
        # What was not asked for is of no use, and must not come out as a result.
        answer.values = {key: value for key, value in answer.values.items() if key in wanted}
        answer.errors = {key: error for key, error in answer.errors.items() if key in wanted}
        return answer


def _passes(error: KafkaError, codes: frozenset[ErrorCode], raised: bool) -> bool:
    """Whether to ask again: codes that say so, and whatever passes of a call as a whole."""
    if isinstance(error, UnsupportedVersionError):
        return False
    if raised or error.code is None:
        return error.retriable
    return error.code in codes or isinstance(error, NodeUnknownError)


def _gave_up(what: str, deadline: Deadline, error: KafkaError) -> KafkaError:
    if isinstance(error, ThrottlingQuotaExceededError):
        return error
    late = KafkaTimeoutError(f"{what} was not done within {deadline.timeout_ms} ms: {error}")
    late.__cause__ = error
    return late
