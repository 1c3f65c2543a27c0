"""Where the leader of a group puts tasks."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.streams.machine.placement import HostTasks, MemberState, Placed, Rules, place
from moldau.streams.machine.subtopologies import TaskId


def tasks(*texts: str) -> frozenset[TaskId]:
    return frozenset(map(TaskId.parse, texts))


def member(process: str, active: str = "", standby: str = "", endpoint: str = "") -> MemberState:
    return MemberState(
        process_id=process,
        endpoint=endpoint,
        active=tasks(*active.split()),
        standby=tasks(*standby.split()),
    )


FOUR = "0_0 0_1 0_2 0_3"


@pytest.mark.parametrize(
    ("members", "all_tasks", "expected"),
    [
        pytest.param({"a": member("p")}, FOUR, {"a": FOUR}, id="one member runs everything"),
        pytest.param(
            {"a": member("p"), "b": member("q")},
            FOUR,
            {"a": "0_0 0_2", "b": "0_1 0_3"},
            id="new members share",
        ),
        pytest.param(
            {"a": member("p", FOUR), "b": member("q")},
            FOUR,
            {"a": "0_0 0_1", "b": ""},
            id="what moves is given to nobody until its owner has given it up",
        ),
        pytest.param(
            {"a": member("p", "0_0 0_1"), "b": member("q")},
            FOUR,
            {"a": "0_0 0_1", "b": "0_2 0_3"},
            id="then the other gets it",
        ),
        pytest.param(
            {"a": member("p", "0_3"), "b": member("q", "0_0 0_1")},
            FOUR,
            {"a": "0_2 0_3", "b": "0_0 0_1"},
            id="tasks stay where they are",
        ),
        pytest.param(
            {"a": member("p"), "b": member("q"), "c": member("r")},
            "0_0 0_1",
            {"a": "0_0", "b": "0_1", "c": ""},
            id="more members than tasks",
        ),
        pytest.param(
            {"a": member("p"), "b": member("q", standby="0_0")},
            "0_0 1_0",
            {"a": "1_0", "b": "0_0"},
            id="a standby becomes active",
        ),
        pytest.param(
            {"a": member("p"), "b": member("q")},
            "0_0 0_1 1_0 1_1",
            {"a": "0_0 1_0", "b": "0_1 1_1"},
            id="each sub-topology is spread",
        ),
    ],
)
def test_active_tasks(
    members: Mapping[str, MemberState], all_tasks: str, expected: Mapping[str, str]
) -> None:
    placed = place(members, tasks(*all_tasks.split()), stateful=tasks("0_0"))
    found = {name: each.active for name, each in placed.items()}
    assert found == {name: tasks(*texts.split()) for name, texts in expected.items()}


def test_standbys_are_in_other_processes() -> None:
    members = {"a": member("p"), "b": member("p"), "c": member("q")}
    all_tasks = tasks("0_0", "0_1", "0_2")
    placed = place(members, all_tasks, stateful=all_tasks, rules=Rules(standby_replicas=1))
    process = {name: state.process_id for name, state in members.items()}
    runs_on = {task: process[name] for name, each in placed.items() for task in each.active}
    kept_on = {task: process[name] for name, each in placed.items() for task in each.standby}
    assert set(kept_on) == all_tasks
    assert all(runs_on[task] != kept_on[task] for task in all_tasks)


def test_one_process_has_no_standbys() -> None:
    placed = place(
        {"a": member("p")}, tasks("0_0"), stateful=tasks("0_0"), rules=Rules(standby_replicas=2)
    )
    assert placed["a"].standby == frozenset()


def test_hosts_have_the_tasks_of_all_their_threads() -> None:
    members = {"a": member("p", endpoint="h:1"), "b": member("p", endpoint="h:1")}
    placed = place(members, tasks("0_0", "0_1"), stateful=())
    assert placed["a"].hosts == {"h:1": HostTasks(active=tasks("0_0", "0_1"))}


def test_a_shutdown_reaches_all_members() -> None:
    asks = MemberState(process_id="p", shutdown=True)
    placed = place({"a": asks, "b": member("q")}, (), stateful=())
    assert all(each.shutdown for each in placed.values())


def test_bytes_of_members_and_assignments() -> None:
    state = MemberState(
        process_id="p",
        endpoint="h:1",
        standby=tasks("1_2"),
        offsets={TaskId(1, 2): 7},
        shutdown=True,
    )
    assert MemberState.decode(state.encode(), (), "m") == state
    assert MemberState.decode(None, (), "m").process_id == "m"
    placed = Placed(
        active=tasks("0_10"),
        standby=tasks("1_2"),
        hosts={"h:1": HostTasks(active=tasks("0_1"))},
        probe=True,
        hands_over=True,
    )
    assert Placed.decode(placed.encode()) == placed
    assert Placed.decode(None) == Placed()
    assert Placed.decode(b'{"version":9,"active":["0_1"],"more":1}').active == tasks("0_1")


def having(process: str, active: str = "", standby: str = "", **offsets: int) -> MemberState:
    """A member with state; `t0_1=5` says how far it has task 0_1."""
    found = {TaskId.parse(name.removeprefix("t")): offset for name, offset in offsets.items()}
    return member(process, active, standby)._replace(offsets=found)


BIG = {f"t{task}": 50_000 for task in FOUR.split()}


def warmed(placed: Mapping[str, Placed], name: str) -> frozenset[TaskId]:
    return placed[name].standby


def test_tasks_with_state_stay_until_their_new_place_has_it() -> None:
    everything = tasks(*FOUR.split())
    members = {"a": having("p", FOUR, **BIG), "b": member("q")}
    first = place(members, everything, stateful=everything)
    assert first["a"].active == everything
    assert first["b"].active == frozenset()
    assert warmed(first, "b") == tasks("0_2", "0_3")
    assert first["b"].probe
    assert not first["a"].probe
    # 40000 of 50000 are not enough, and 10000 behind are.
    members["b"] = having("q", "", "0_2 0_3", t0_2=39_999, t0_3=40_000)
    second = place(members, everything, stateful=everything)
    assert second["a"].active == tasks("0_0", "0_1", "0_2")
    assert second["b"].active == frozenset(), "its owner gives it up first"
    # Whoever comes back to this assignment without a rebalance, as a static member, asks for one.
    assert second["a"].hands_over
    assert not second["b"].hands_over
    members["a"] = having("p", "0_0 0_1 0_2", **BIG)
    third = place(members, everything, stateful=everything)
    assert third["b"].active == tasks("0_3")
    assert not any(each.hands_over for each in third.values())
    assert warmed(third, "b") == tasks("0_2")


def test_so_many_copies_warm_up_at_a_time() -> None:
    everything = tasks(*FOUR.split())
    members = {"a": having("p", FOUR, **BIG), "b": member("q")}
    placed = place(members, everything, stateful=everything, rules=Rules(max_warmup_replicas=1))
    assert len(warmed(placed, "b")) == 1
    assert placed["a"].active == everything


def test_little_state_moves_at_once() -> None:
    everything = tasks(*FOUR.split())
    small = dict.fromkeys(BIG, 10_000)
    placed = place(
        {"a": having("p", FOUR, **small), "b": member("q")}, everything, stateful=everything
    )
    assert placed["a"].active == tasks("0_0", "0_1")
    assert warmed(placed, "b") == frozenset()


def test_after_a_failure_a_standby_takes_over_wherever_the_balance_is() -> None:
    everything = tasks("0_0", "0_1", "0_2")
    members = {
        "a": having("p", "0_0", "0_1 0_2", t0_0=50_000, t0_1=50_000, t0_2=49_000),
        "b": member("q"),
        "c": member("r"),
    }
    placed = place(members, everything, stateful=everything)
    assert placed["a"].active == everything
    assert sum(len(warmed(placed, name)) for name in "bc") == 2


def test_threads_of_a_process_share_its_state() -> None:
    everything = tasks(*FOUR.split())
    members = {"a": having("p", FOUR, **BIG), "b": member("p")}
    assert place(members, everything, stateful=everything)["a"].active == tasks("0_0", "0_1")


@given(st.data())
def test_rounds_end_with_every_task_on_one_member(data: st.DataObject) -> None:
    all_tasks = [
        TaskId(sub, number)
        for sub in range(data.draw(st.integers(1, 3)))
        for number in range(data.draw(st.integers(1, 6)))
    ]
    names = [f"m{number}" for number in range(data.draw(st.integers(1, 5)))]
    owned: dict[str, set[TaskId]] = {name: set() for name in names}
    for task in all_tasks:
        owner = data.draw(st.sampled_from([None, *names]))
        if owner is not None:
            owned[owner].add(task)
    for _ in range(3):
        members = {
            name: MemberState(process_id=name, active=frozenset(mine))
            for name, mine in owned.items()
        }
        placed = place(members, all_tasks, stateful=all_tasks, rules=Rules(standby_replicas=1))
        given_out = [task for each in placed.values() for task in each.active]
        assert len(given_out) == len(set(given_out))
        for name, each in placed.items():
            others = {task for other in names if other != name for task in owned[other]}
            assert not each.active & others, "nothing is taken from a member that has it"
        owned = {name: set(each.active) for name, each in placed.items()}
    assert sorted(task for mine in owned.values() for task in mine) == sorted(all_tasks)
    sizes = [len(mine) for mine in owned.values()]
    assert max(sizes) - min(sizes) <= 1
