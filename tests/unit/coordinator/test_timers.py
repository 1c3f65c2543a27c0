from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.broker.coordinator.machine.timers import TimerQueue

_OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("schedule"), st.integers(0, 5), st.integers(0, 50)),
        st.tuples(st.just("cancel"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("advance"), st.just(0), st.integers(0, 30)),
    ),
    max_size=60,
)


@given(_OPERATIONS)
def test_fires_what_an_obvious_implementation_fires(
    operations: list[tuple[str, int, int]],
) -> None:
    queue, obvious, now = TimerQueue(), dict[int, int](), 0
    for name, timer, amount in operations:
        if name == "schedule":
            queue.schedule(timer, now + amount)
            obvious[timer] = now + amount
        elif name == "cancel":
            queue.cancel(timer)
            obvious.pop(timer, None)
        else:
            now += amount
            due = {timer for timer, at in obvious.items() if at <= now}
            fired = set()
            while (each := queue.pop_due(now)) is not None:
                assert each not in fired, "fires once"
                fired.add(each)
            assert fired == due
            for each in due:
                del obvious[each]
        assert len(queue) == len(obvious)
        wake = queue.next_at_ms()
        if obvious:
            assert wake is not None
            assert wake <= min(obvious.values()), "never wakes too late"
        else:
            assert wake is None


def test_due_timers_come_in_order_of_deadline() -> None:
    queue = TimerQueue()
    for timer, at in (("c", 30), ("a", 10), ("b", 20)):
        queue.schedule(timer, at)
    assert [queue.pop_due(100) for _ in range(4)] == ["a", "b", "c", None]


def test_moving_deadlines_for_ever_keeps_the_heap_small() -> None:
    queue = TimerQueue()
    for step in range(10_000):
        queue.schedule("session", 1_000 + step)
        queue.schedule("other", 100_000 - step)
    assert len(queue._heap) < 200
