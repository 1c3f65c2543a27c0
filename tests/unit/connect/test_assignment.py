"""Who runs what: incremental assignment step by step, and the bytes of the group protocol."""

from __future__ import annotations

import pytest

from moldau.connect.machine import protocol
from moldau.connect.machine.assignment import (
    ClusterAssignment,
    IncrementalAssignor,
    eager_assignment,
)
from moldau.connect.machine.ids import TaskId
from moldau.connect.machine.protocol import NOTHING, Assignment, Work, WorkerState, work_of

DELAY_MS = 300_000


def work(*names: str) -> Work:
    """`a` is a connector, `a-0` a task."""
    connectors = [each for each in names if "-" not in each]
    tasks = [TaskId(each[:-2], int(each[-1])) for each in names if "-" in each]
    return work_of(connectors, tasks)


ALL = work("a", "b", "a-0", "a-1", "b-0", "b-1")


class Cluster:
    """Workers that do what the leader says."""

    def __init__(self, *workers: str, delay_ms: int = DELAY_MS) -> None:
        self.held = dict.fromkeys(workers, NOTHING)
        self.assignor = IncrementalAssignor(delay_ms)
        self.generation = 0
        self.now_ms = 1_000

    def rebalance(self, configured: Work = ALL) -> ClusterAssignment:
        found = self.assignor.assign(
            configured,
            self.held,
            last_generation=self.generation if self.generation else -1,
            generation=self.generation + 1,
            now_ms=self.now_ms,
        )
        self.generation += 1
        for worker, mine in self.held.items():
            self.held[worker] = (mine - found.revoked.get(worker, NOTHING)) | found.added[worker]
        everything = [*(each for mine in self.held.values() for each in mine.tasks)]
        assert len(everything) == len(set(everything)), "a task runs twice"
        return found

    def settle(self, configured: Work = ALL) -> None:
        for _ in range(10):
            if not self.rebalance(configured).revoked:
                return
        raise AssertionError("it never ends")


def test_new_work_is_spread_evenly() -> None:
    cluster = Cluster("w1", "w2")
    cluster.settle()
    assert sorted(len(each) for each in cluster.held.values()) == [3, 3]
    assert cluster.held["w1"] | cluster.held["w2"] == ALL


def test_a_worker_that_comes_gets_its_share_without_stopping_the_rest() -> None:
    cluster = Cluster("w1")
    cluster.settle()
    cluster.held["w2"] = NOTHING
    found = cluster.rebalance()
    assert sum(map(len, found.revoked.values())) == 3
    assert found.added["w2"] == NOTHING
    cluster.settle()
    assert sorted(len(each) for each in cluster.held.values()) == [3, 3]


def test_lost_work_waits_for_its_worker() -> None:
    cluster = Cluster("w1", "w2")
    cluster.settle()
    lost = cluster.held.pop("w2")
    found = cluster.rebalance()
    assert (found.delay_ms, found.added["w1"]) == (DELAY_MS, NOTHING)
    cluster.now_ms += 100_000
    assert cluster.rebalance().delay_ms == DELAY_MS - 100_000
    cluster.now_ms += 200_000
    found = cluster.rebalance()
    assert (found.delay_ms, found.added["w1"]) == (0, lost)


def test_a_worker_that_comes_back_in_time_gets_its_work_again() -> None:
    cluster = Cluster("w1", "w2")
    cluster.settle()
    before = cluster.held["w1"]
    lost = cluster.held.pop("w2")
    cluster.rebalance()
    cluster.held["w2-again"] = NOTHING
    cluster.now_ms += 1_000
    assert cluster.rebalance().delay_ms == DELAY_MS - 1_000
    cluster.now_ms += DELAY_MS
    cluster.rebalance()
    assert cluster.held == {"w1": before, "w2-again": lost}


def test_without_delay_lost_work_moves_at_once() -> None:
    cluster = Cluster("w1", "w2", delay_ms=0)
    cluster.settle()
    del cluster.held["w2"]
    assert cluster.rebalance().delay_ms == 0
    assert cluster.held["w1"] == ALL


def test_deleted_work_is_given_up() -> None:
    cluster = Cluster("w1", "w2")
    cluster.settle()
    left = work("a", "a-0", "a-1")
    cluster.settle(left)
    assert cluster.held["w1"] | cluster.held["w2"] == left


def test_work_that_two_workers_have_is_taken_from_both_and_given_to_one() -> None:
    cluster = Cluster("w1", "w2")
    cluster.settle()
    cluster.held["w2"] = cluster.held["w1"]
    found = cluster.assignor.assign(
        ALL, cluster.held, last_generation=cluster.generation, generation=9, now_ms=5_000
    )
    assert found.revoked["w1"] == cluster.held["w1"]
    assert found.revoked["w2"] == cluster.held["w1"]


def test_eager_assignment_is_round_robin() -> None:
    found = eager_assignment(["w2", "w1"], ALL)
    assert found["w1"] == work("a", "a-0", "b-0")
    assert found["w2"] == work("b", "a-1", "b-1")


@pytest.mark.parametrize("name", protocol.VERSIONS)
def test_what_workers_send_comes_back(name: str) -> None:
    version = protocol.VERSIONS[name]
    assignment = Assignment(
        version, 0, "w1", "http://w1:8083", 17, work("a", "a-0", "b-1"), work("b"), 5_000
    )
    if version == 0:
        assignment = Assignment(0, 0, "w1", "http://w1:8083", 17, work("a", "a-0", "b-1"))
    assert protocol.decode_assignment(protocol.encode_assignment(assignment, version)) == assignment
    state = WorkerState("http://w1:8083", 17, assignment)
    found = protocol.decode_state(protocol.encode_state(state, name))
    assert (found.url, found.offset) == (state.url, 17)
    assert found.assignment.work == (NOTHING if version == 0 else assignment.work)


def test_a_worker_without_work_sends_null() -> None:
    assert protocol.encode_state(WorkerState("u", 1), protocol.SESSIONED) == (
        b"\x00\x02\x00\x01u" + (1).to_bytes(8, "big") + b"\xff\xff\xff\xff"
    )


def test_bytes_that_end_too_early_are_refused() -> None:
    data = protocol.encode_assignment(Assignment(1, 0, "w", "u", 1, ALL), 1)
    for size in range(len(data)):
        with pytest.raises(protocol.ProtocolError):
            protocol.decode_assignment(data[:size])
