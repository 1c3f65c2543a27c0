"""When requests of a connection wait, and what their metrics then are."""

from __future__ import annotations

import asyncio

import pytest

from moldau.broker.metrics.phases import Phases
from moldau.broker.metrics.requests import RequestMetrics
from moldau.broker.metrics.tables import REQUEST
from moldau.metrics import Registry

MS = 1_000_000


class Times:
    """Stands for an API's compiled times: the request that was answered last."""

    def __init__(self, name: str, said: list[tuple[str, str, int, int]]) -> None:
        self._name = name
        self._said = said
        self.times = self
        self.total_ns = self.answered_ns = 0

    def at(self, started_ns: int, answered_ns: int) -> Times:
        self.total_ns, self.answered_ns = answered_ns - started_ns, answered_ns
        return self

    def answered(self, started_ns: int, size: int) -> None:
        self.at(started_ns, started_ns + size)

    def __getattr__(self, phase: str) -> object:
        return lambda total_ns, more_ns: self._said.append((self._name, phase, total_ns, more_ns))


def test_a_request_behind_others_waits_before_and_the_first_one_after() -> None:
    said: list[tuple[str, str, int, int]] = []
    first, second = Times("first", said), Times("second", said)
    phases = Phases()
    phases.turn_ns, phases.last = 100, first.at(100, 130).answered  # type: ignore[assignment]
    phases.answer(second, 140, 10)  # type: ignore[arg-type]
    phases.given(200, all_sent=True)
    assert said == [
        ("second", "queued", 10, 40),
        ("first", "held_back", 30, 70),
        ("second", "held_back", 50, 50),
    ]


def test_what_the_kernel_does_not_take_is_sent_later() -> None:
    said: list[tuple[str, str, int, int]] = []
    phases = Phases()
    phases.turn_ns, phases.last = 100, Times("fetch", said).at(100, 130).answered  # type: ignore[assignment]
    phases.given(150, all_sent=False)
    phases.all_sent(950)
    assert said == [("fetch", "held_back", 30, 20), ("fetch", "sent", 50, 800)]
    phases.given(1_000, all_sent=True)
    assert len(said) == 2


def test_what_is_read_ahead_waits_until_the_connection_goes_on() -> None:
    said: list[tuple[str, str, int, int]] = []
    phases = Phases()
    phases.received_ahead(100)
    phases.received_ahead(200)
    phases.resume()
    phases.answer(Times("late", said), 400, 10)  # type: ignore[arg-type]
    assert said == [("late", "queued", 10, 300)]
    # A client that a quota holds back is in no queue.
    phases.given(500, all_sent=True)
    phases.received_ahead(600)
    phases.forget()
    phases.resume()
    assert phases.begin(900) == 0


def test_a_request_that_waits_for_others_has_all_phases() -> None:
    registry = Registry(lambda: 0.0)
    metrics = RequestMetrics(registry)
    fetch = metrics.api("FetchConsumer", 17, metrics.api("Fetch", 17))
    phases = Phases()

    async def run() -> None:
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        phases.turn_ns = 1
        fetch.waits(50 * MS + 1, 77, reply, phases)
        reply.set_result(b"")
        await reply
        await asyncio.sleep(0)

    asyncio.run(run())
    assert len(phases.ready) == 1
    phases.given(phases.ready[0][2] + 3 * MS, all_sent=True)
    for name in ("Fetch", "FetchConsumer"):
        found = {each: registry.histogram(spec, name) for each, spec in REQUEST.items()}
        assert found["RequestQueueTimeMs"].max == pytest.approx(50.0)
        assert found["ResponseQueueTimeMs"].max == pytest.approx(3.0)
        assert {histogram.count for histogram in found.values()} == {1}
        parts = ("RequestQueueTimeMs", "LocalTimeMs", "RemoteTimeMs", "ResponseQueueTimeMs")
        whole = sum(found[part].sum for part in parts)
        assert found["TotalTimeMs"].sum == pytest.approx(whole)
