"""What the control loop decides: tables of events, and random lives of a whole deployment."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.pipelines.control.machine.decisions import Reconciler
from moldau.pipelines.control.machine.events import (
    Effect,
    Ended,
    Event,
    Exit,
    Reattach,
    Reattached,
    Remove,
    Removed,
    Report,
    ServerSeen,
    ServerStartFailed,
    Shutdown,
    Spec,
    SpecsRead,
    Start,
    Started,
    StartFailed,
    StartServer,
    Stop,
    Stopped,
    Tick,
)
from moldau.pipelines.machine.records import (
    Desired,
    ErrorRecord,
    QueryRecord,
    State,
    StatusRecord,
)
from support.examples import examples

RUNNING, STOPPED, DELETED = Desired.RUNNING, Desired.STOPPED, Desired.DELETED
ERROR = ErrorRecord(message="no")
QUERIES = (QueryRecord("a", "id", "run"),)


class Middle:
    """Jitter of nothing."""

    def randrange(self, stop: int, /) -> int:
        return stop // 2


class Loop:
    """A reconciler with a clock; reports are left out of what a step shows."""

    def __init__(self, remembered: dict[str, StatusRecord] | None = None) -> None:
        numbers = iter(range(1, 1000))
        self.reconciler = Reconciler(
            Middle(), lambda: f"session {next(numbers)}", remembered=remembered
        )
        self.now_ms = 1_000_000

    def step(self, event: Event, *, after_ms: int = 0) -> list[Effect]:
        self.now_ms += after_ms
        effects = self.reconciler.step(event, self.now_ms)
        return [effect for effect in effects if not isinstance(effect, Report)]

    def want(self, desired: Desired, revision: int = 1, **more: bool) -> list[Effect]:
        return self.step(SpecsRead({"a": Spec(desired, revision, **more)}))

    @property
    def state(self) -> State | None:
        status = self.reconciler.status("a")
        return None if status is None else status.state


def running(finite: bool = False) -> Loop:
    loop = Loop()
    loop.step(ServerSeen("server"))
    assert loop.want(RUNNING, finite=finite) == [Start("a", 1, "server", "session 1")]
    assert loop.step(Started("a", QUERIES)) == []
    assert loop.state is State.RUNNING
    return loop


def test_the_server_is_started_when_a_pipeline_needs_it() -> None:
    loop = Loop()
    assert loop.step(ServerSeen(None)) == []
    assert loop.want(STOPPED) == []
    assert loop.want(RUNNING) == [StartServer()]
    assert loop.step(Tick()) == []
    assert loop.step(ServerSeen("server")) == [Start("a", 1, "server", "session 1")]


def test_the_server_is_started_when_it_is_to_be_kept() -> None:
    loop = Loop()
    loop.step(ServerSeen(None))
    assert loop.step(SpecsRead({}, keep_server=True)) == [StartServer()]


def test_nothing_is_decided_before_the_server_has_been_looked_at() -> None:
    loop = Loop({"a": StatusRecord(name="a", state=State.RUNNING, session_id="old")})
    assert loop.want(RUNNING) == []


def test_a_session_is_written_down_before_anything_starts_in_it() -> None:
    loop = Loop()
    loop.step(ServerSeen("server"))
    effects = loop.reconciler.step(SpecsRead({"a": Spec(RUNNING, 1)}), loop.now_ms)
    assert effects == [Report("a"), Start("a", 1, "server", "session 1")]
    status = loop.reconciler.status("a")
    assert status is not None
    assert (status.state, status.session_id) == (State.STARTING, "session 1")


def test_another_revision_stops_and_starts() -> None:
    loop = running()
    assert loop.want(RUNNING, revision=2) == [Stop("a")]
    assert loop.want(RUNNING, revision=2) == []
    assert loop.step(Stopped("a")) == [Start("a", 2, "server", "session 2")]


def test_a_stop_asked_for_while_it_starts_comes_after_the_start() -> None:
    loop = Loop()
    loop.step(ServerSeen("server"))
    loop.want(RUNNING)
    assert loop.want(STOPPED) == []
    assert loop.step(Started("a", QUERIES)) == [Stop("a")]
    assert loop.step(Stopped("a")) == []
    assert loop.state is State.STOPPED


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(Ended("a", ERROR), id="its query failed"),
        pytest.param(Ended("a", None), id="somebody else stopped it"),
    ],
)
def test_what_failed_is_tried_again_ever_later(failure: Event) -> None:
    loop = running()
    delays_ms = []
    for number in range(2, 11):
        assert loop.step(failure) == [Stop("a")]
        assert loop.step(Stopped("a")) == []
        assert loop.state is State.RESTARTING
        waited_ms = 0
        while not (effects := loop.step(Tick(), after_ms=500)):
            waited_ms += 500
        delays_ms.append(waited_ms + 500)
        assert effects == [Start("a", 1, "server", f"session {number}")]
        loop.step(Started("a", QUERIES))
    assert delays_ms == [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000]


def test_who_ran_well_for_a_while_begins_anew_with_short_pauses() -> None:
    loop = running()
    for _ in range(4):
        loop.step(Ended("a", ERROR))
        loop.step(Stopped("a"))
        loop.step(Tick(), after_ms=60_000)
        loop.step(Started("a", QUERIES))
    loop.step(Tick(), after_ms=60_000)
    loop.step(Ended("a", ERROR))
    loop.step(Stopped("a"))
    assert loop.step(Tick(), after_ms=999) == []
    assert loop.step(Tick(), after_ms=1) == [Start("a", 1, "server", "session 6")]


def test_restarts_are_counted_until_a_user_starts_it() -> None:
    loop = running()

    def restarts() -> int:
        status = loop.reconciler.status("a")
        assert status is not None
        return status.restarts

    for count in (1, 2):
        loop.step(Ended("a", ERROR))
        loop.step(Stopped("a"))
        loop.step(Tick(), after_ms=60_000)
        loop.step(Started("a", QUERIES))
        assert restarts() == count
    loop.step(Tick(), after_ms=60_000)
    assert restarts() == 2
    loop.step(ServerSeen(None))
    loop.step(ServerSeen("another"))
    assert restarts() == 3
    loop.step(Started("a", QUERIES))
    loop.want(RUNNING, 2)
    loop.step(Stopped("a"))
    assert loop.state is State.STARTING
    assert restarts() == 0


def test_a_fault_of_the_definition_is_not_tried_again_until_it_changes() -> None:
    loop = Loop()
    loop.step(ServerSeen("server"))
    loop.want(RUNNING)
    assert loop.step(StartFailed("a", ERROR, lasting=True)) == [Stop("a")]
    assert loop.step(Stopped("a")) == []
    assert loop.state is State.FAILED
    assert loop.step(Tick(), after_ms=3_600_000) == []
    assert loop.want(RUNNING) == []
    assert loop.want(RUNNING, revision=2) == [Start("a", 2, "server", "session 2")]


def test_what_comes_to_its_end_has_finished() -> None:
    loop = running(finite=True)
    assert loop.step(Ended("a", None)) == [Stop("a")]
    assert loop.step(Stopped("a")) == []
    assert loop.state is State.FINISHED
    assert loop.step(Tick(), after_ms=3_600_000) == []
    assert loop.want(RUNNING, revision=2, finite=True) == [Start("a", 2, "server", "session 2")]


def test_a_stop_that_fails_is_asked_again_and_nothing_starts_before() -> None:
    loop = running()
    assert loop.want(RUNNING, revision=2) == [Stop("a")]
    assert loop.step(Stopped("a", ERROR)) == []
    assert loop.step(Tick(), after_ms=1_000) == [Stop("a")]
    assert loop.step(Stopped("a")) != []


def test_with_the_server_go_the_queries_and_both_come_back() -> None:
    loop = running()
    assert loop.step(ServerSeen(None)) == []
    assert loop.state is State.RESTARTING
    assert loop.step(Tick(), after_ms=1_000) == [StartServer()]
    assert loop.step(ServerSeen("next")) == [Start("a", 1, "next", "session 2")]
    status = loop.reconciler.status("a")
    assert status is not None
    assert status.attempts == 0


def test_a_start_in_a_server_that_died_meanwhile_is_made_anew() -> None:
    loop = Loop()
    loop.step(ServerSeen("server"))
    loop.want(RUNNING)
    loop.step(ServerSeen("next"))
    assert loop.step(StartFailed("a", ERROR, lasting=True)) == [Start("a", 1, "next", "session 2")]


def test_a_server_that_cannot_be_started_is_tried_again_ever_later() -> None:
    loop = Loop()
    loop.step(ServerSeen(None))
    loop.want(RUNNING)
    for delay_ms in (1_000, 2_000, 4_000):
        assert loop.step(ServerStartFailed(ERROR)) == []
        assert loop.reconciler.server_error == ERROR
        assert loop.step(Tick(), after_ms=delay_ms - 1) == []
        assert loop.step(Tick(), after_ms=1) == [StartServer()]
    loop.step(ServerSeen("server"))
    assert loop.reconciler.server_error is None


def remembered(state: State, server_id: str = "server") -> dict[str, StatusRecord]:
    return {
        "a": StatusRecord(
            name="a",
            state=state,
            revision=1,
            server_id=server_id,
            session_id="old",
            queries=QUERIES,
        )
    }


@pytest.mark.parametrize(
    ("state", "server_id", "effects"),
    [
        pytest.param(State.RUNNING, "server", [Reattach("a")], id="runs on: taken over"),
        pytest.param(State.STARTING, "server", [Stop("a")], id="half started: closed first"),
        pytest.param(State.STOPPING, "server", [Stop("a")], id="half stopped: stopped"),
        pytest.param(
            State.RUNNING,
            "earlier",
            [Start("a", 1, "server", "session 1")],
            id="its server is gone: started",
        ),
    ],
)
def test_after_a_crash_of_the_loop(state: State, server_id: str, effects: list[Effect]) -> None:
    loop = Loop(remembered(state, server_id))
    loop.want(RUNNING)
    assert loop.step(ServerSeen("server")) == effects


def test_queries_that_were_taken_over_go_on_as_they_are() -> None:
    loop = Loop(remembered(State.RUNNING))
    loop.want(RUNNING)
    loop.step(ServerSeen("server"))
    assert loop.step(Reattached("a", found=True)) == []
    status = loop.reconciler.status("a")
    assert status is not None
    assert (status.state, status.session_id, status.queries) == (State.RUNNING, "old", QUERIES)
    assert loop.reconciler.running() == ["a"]


def test_queries_that_are_not_found_are_started_after_their_session_is_closed() -> None:
    loop = Loop(remembered(State.RUNNING))
    loop.want(RUNNING)
    loop.step(ServerSeen("server"))
    assert loop.step(Reattached("a", found=False)) == [Stop("a")]
    assert loop.step(Stopped("a")) == [Start("a", 1, "server", "session 1")]


def test_a_pipeline_is_removed_after_it_has_stopped() -> None:
    loop = running()
    assert loop.want(DELETED, delete_checkpoint=True) == [Stop("a")]
    assert loop.step(Stopped("a")) == [Remove("a", delete_checkpoint=True)]
    assert loop.step(Removed("a", ERROR)) == []
    assert loop.step(Tick(), after_ms=1_000) == [Remove("a", delete_checkpoint=True)]
    loop.step(SpecsRead({}))
    assert loop.step(Removed("a")) == []
    assert loop.state is None


def test_what_waits_for_its_next_try_is_removed_at_once() -> None:
    loop = running()
    for _ in range(9):
        loop.step(Ended("a", ERROR))
        loop.step(Stopped("a"))
        loop.step(Tick(), after_ms=60_000)
        loop.step(Started("a", QUERIES))
    loop.step(Ended("a", ERROR))
    loop.step(Stopped("a"))
    assert loop.want(DELETED) == [Remove("a", delete_checkpoint=False)]


def test_a_shutdown_stops_all_and_ends_and_the_next_loop_starts_them_again() -> None:
    loop = running()
    assert loop.step(Shutdown()) == [Stop("a")]
    assert loop.step(Tick(), after_ms=1_000) == []
    assert loop.step(Stopped("a")) == [Exit()]
    status = loop.reconciler.status("a")
    assert status is not None
    later = Loop({"a": status})
    later.want(RUNNING)
    assert later.step(ServerSeen("server")) == [Start("a", 1, "server", "session 1")]


def test_only_so_many_start_at_once() -> None:
    loop = Loop()
    loop.step(ServerSeen("server"))
    effects = loop.step(SpecsRead({name: Spec(RUNNING, 1) for name in "abcd"}))
    assert [effect.name for effect in effects if isinstance(effect, Start)] == ["a", "b"]
    effects = loop.step(StartFailed("a", ERROR, lasting=True))
    assert Start("c", 1, "server", "session 3") in effects


# Whole lives.


@dataclass
class World:
    """Servers, sessions and loops, of which each may die at any time."""

    specs: dict[str, Spec] = field(default_factory=dict)
    statuses: dict[str, StatusRecord] = field(default_factory=dict)
    server: int | None = None
    servers: int = 0
    sessions: int = 0
    #: Live queries by session: the pipeline and the revision.
    live: dict[str, tuple[str, int]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    #: What workers of the present loop are about to do, and of earlier ones.
    jobs: list[Effect] = field(default_factory=list)
    zombies: list[Effect] = field(default_factory=list)
    now_ms: int = 0

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.zombies += self.jobs
        self.jobs = []
        self.loop = Reconciler(random.Random(1), self.new_session, remembered=dict(self.statuses))
        self.tell(self.wanted())
        self.tell(self.seen())

    def new_session(self) -> str:
        self.sessions += 1
        return f"session {self.sessions}"

    def wanted(self) -> SpecsRead:
        return SpecsRead(dict(self.specs))

    def seen(self) -> ServerSeen:
        return ServerSeen(None if self.server is None else f"server {self.server}")

    def tell(self, event: Event) -> None:
        for effect in self.loop.step(event, self.now_ms):
            if isinstance(effect, Report):
                status = self.loop.status(effect.name)
                assert status is not None
                self.statuses[effect.name] = status
            else:
                self.jobs.append(effect)
        self.check()

    def check(self) -> None:
        names = [name for name, _ in self.live.values()]
        assert len(names) == len(set(names)), f"two of one pipeline run: {self.live}"
        under_way = [effect.name for effect in self.jobs if not isinstance(effect, StartServer)]  # type: ignore[union-attr]
        assert len(under_way) == len(set(under_way)), f"two effects at once: {self.jobs}"

    def begin_queries(self, effect: Start) -> bool:
        """What Spark does: nothing in a closed session, or in a server that is gone."""
        alive = self.server is not None and effect.server_id == f"server {self.server}"
        if not alive or effect.session_id in self.closed:
            return False
        self.live[effect.session_id] = (effect.name, effect.revision)
        return True

    def close(self, name: str) -> None:
        status = self.loop.status(name)
        if status is not None and status.session_id is not None:
            self.closed.add(status.session_id)
            self.live.pop(status.session_id, None)

    def work(self, index: int, well: bool) -> None:
        """A worker of the present loop does its job and reports."""
        if not self.jobs:
            return
        effect = self.jobs.pop(index % len(self.jobs))
        match effect:
            case StartServer():
                if well:
                    self.servers += 1
                    self.server = self.servers
                self.tell(self.seen() if well else ServerStartFailed(ERROR))
            case Start(name):
                if well and self.begin_queries(effect):
                    self.tell(Started(name, QUERIES))
                else:
                    if not well and index % 2:
                        # It began and the report was a failure.
                        self.begin_queries(effect)
                    self.tell(StartFailed(name, ERROR, lasting=False))
            case Reattach(name):
                status = self.loop.status(name)
                assert status is not None
                self.tell(Reattached(name, well and status.session_id in self.live))
            case Stop(name):
                if well or self.server is None:
                    self.close(name)
                self.tell(Stopped(name, None if well else ERROR))
            case Remove(name):
                if well:
                    self.specs.pop(name, None)
                    self.statuses.pop(name, None)
                    self.tell(self.wanted())
                self.tell(Removed(name, None if well else ERROR))

    def haunt(self, index: int) -> None:
        """A worker of a dead loop was further than anybody knows."""
        if self.zombies:
            effect = self.zombies.pop(index % len(self.zombies))
            if isinstance(effect, Start):
                self.begin_queries(effect)
                self.check()

    def want(self, name: str, desired: Desired, anew: bool) -> None:
        was = self.specs.get(name, Spec(desired, 0))
        self.specs[name] = replace(was, desired=desired, revision=was.revision + anew)
        self.tell(self.wanted())

    def kill_server(self) -> None:
        self.server = None
        self.live.clear()
        self.tell(self.seen())

    def fail_query(self, name: str) -> None:
        status = self.loop.status(name)
        if name in self.loop.running() and status is not None:
            self.live.pop(str(status.session_id), None)
            self.tell(Ended(name, ERROR))

    def settle(self) -> None:
        for _ in range(400):
            while self.zombies:
                self.haunt(0)
            while self.jobs:
                self.work(0, well=True)
            for name in self.loop.running():
                status = self.loop.status(name)
                if status is not None and status.session_id not in self.live:
                    self.tell(Ended(name, None))
            self.now_ms += 1_000
            self.tell(Tick())


NAMES = st.sampled_from("ab")
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("work"), st.integers(0, 5), st.sampled_from([True, True, True, False])),
        st.tuples(st.just("want"), NAMES, st.sampled_from(list(Desired)), st.booleans()),
        st.tuples(st.just("kill_server")),
        st.tuples(st.just("begin")),
        st.tuples(st.just("haunt"), st.integers(0, 5)),
        st.tuples(st.just("fail_query"), NAMES),
        st.tuples(st.just("pass"), st.integers(1, 70_000)),
    ),
    max_size=60,
)


@settings(max_examples=examples(300), deadline=None)
@given(ACTIONS)
def test_never_two_of_one_pipeline_and_in_the_end_what_was_wanted(actions: list[tuple]) -> None:  # type: ignore[type-arg]
    world = World()
    world.want("a", RUNNING, anew=True)
    for action, *arguments in actions:
        if action == "pass":
            world.now_ms += arguments[0]
            world.tell(Tick())
        else:
            getattr(world, action)(*arguments)
    world.settle()
    runs = dict(world.live.values())
    wanted = {name: spec.revision for name, spec in world.specs.items() if spec.desired is RUNNING}
    assert runs == wanted
    assert not any(spec.desired is DELETED for spec in world.specs.values())
