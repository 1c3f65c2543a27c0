"""Two instances that take themselves for the primary: the topic's order decides."""

from __future__ import annotations

import pytest

from moldau.services.registry.machine.election import Assignment, Identity, assign
from moldau.services.registry.machine.fencing import Fence, repair
from moldau.services.registry.machine.records import ModeSet, Noop, Record, SchemaSet
from moldau.services.registry.machine.schemas import Schema, StoredSchema
from support.registry.machine import MemoryRegistry

OPENING = Noop(opens_term=True)
CHANGE = ModeSet("a", "READONLY")


@pytest.mark.parametrize(
    ("records", "accepted"),
    [
        pytest.param([(CHANGE, None)], [True], id="Confluent's records have no epoch"),
        pytest.param([(OPENING, 1), (CHANGE, 1)], [True, True], id="a primary"),
        pytest.param(
            [(OPENING, 1), (OPENING, 2), (CHANGE, 1), (CHANGE, 2)],
            [True, True, False, True],
            id="a former primary is late",
        ),
        pytest.param(
            [(OPENING, 1), (OPENING, 1), (CHANGE, 1)],
            [True, False, True],
            id="two begin one term: the first has it",
        ),
        pytest.param([(OPENING, 3), (Noop({".": 1}), 3)], [True, True], id="a mark within a term"),
        pytest.param([(CHANGE, 1)], [False], id="a term that nobody began"),
    ],
)
def test_which_records_count(
    records: list[tuple[Record, int | None]], accepted: list[bool]
) -> None:
    fence = Fence()
    assert [fence.accepts(*each) for each in records] == accepted


def test_a_hidden_key_is_written_again() -> None:
    memory = MemoryRegistry()
    stored = memory.register("a", '"string"')
    other = Schema('"int"')
    hiding = SchemaSet("a", 1, StoredSchema("a", 1, 9, other, other.guid))
    found = repair(memory.registry.state, hiding)
    assert isinstance(found, SchemaSet)
    assert found.stored is not None
    assert found.stored.id == stored.id
    assert repair(memory.registry.state, SchemaSet("b", 1, None)) == SchemaSet("b", 1, None)
    assert repair(memory.registry.state, ModeSet(None, "IMPORT")) == ModeSet(None, None)


def identity(port: int, *, eligible: bool = True, leads: bool = False) -> Identity:
    return Identity("h", port, eligible, is_leader=leads)


@pytest.mark.parametrize(
    ("members", "sticky", "chosen"),
    [
        pytest.param({"x": identity(2), "y": identity(1)}, False, 1, id="the smallest URL"),
        pytest.param(
            {"x": identity(1, eligible=False), "y": identity(2)}, False, 2, id="an eligible one"
        ),
        pytest.param(
            {"x": identity(1), "y": identity(2, leads=True)}, True, 2, id="the one that leads"
        ),
        pytest.param(
            {"x": identity(1), "y": identity(2, leads=True)}, False, 1, id="unless not sticky"
        ),
        pytest.param({"x": identity(1, eligible=False)}, False, None, id="nobody"),
    ],
)
def test_the_primary_is_chosen(
    members: dict[str, Identity], sticky: bool, chosen: int | None
) -> None:
    assignment = assign(members, sticky=sticky)
    assert (assignment.primary and assignment.primary.port) == chosen
    assert Assignment.decode(assignment.encode()) == assignment


def test_members_of_confluents_registry_are_understood() -> None:
    data = (
        b'{"version":1,"host":"sr1","port":8081,"master_eligibility":true,"scheme":"http",'
        b'"leader":false}'
    )
    assert Identity.decode(data) == Identity("sr1", 8081, True)
    assert Identity.decode(Identity("h", 1, False).encode()) == Identity("h", 1, False)
    with pytest.raises(ValueError):
        Identity.decode(b"[]")
    with pytest.raises(ValueError):
        Identity.decode(b'{"host":"x"}')


def test_two_instances_with_one_url_are_reported() -> None:
    assert assign({"x": identity(1), "y": identity(1)}, sticky=False).has_duplicate_urls
