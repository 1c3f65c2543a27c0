"""The table of transitions: which role may follow which, in code and in the README."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import moldau.broker.raft
from moldau.broker.raft.machine.quorum.roles import RoleName
from moldau.broker.raft.machine.quorum.transitions import (
    TRANSITIONS,
    Cause,
    EpochRule,
    Standing,
    check_transition,
)
from moldau.invariant import InvariantError

README = Path(moldau.broker.raft.__file__).with_name("README.md")
EPOCHS = {"same": 5, "next": 6, "higher": 9, "lower": 4}
ALLOWED = {
    EpochRule.SAME: {"same"},
    EpochRule.NEXT: {"next"},
    EpochRule.HIGHER: {"next", "higher"},
}
U, P, C, L, F, R = (
    RoleName.UNATTACHED,
    RoleName.PROSPECTIVE,
    RoleName.CANDIDATE,
    RoleName.LEADER,
    RoleName.FOLLOWER,
    RoleName.RESIGNED,
)


def is_legal(before: RoleName, cause: Cause, after: RoleName, epoch: int) -> bool:
    try:
        check_transition(Standing(before, EPOCHS["same"]), cause, Standing(after, epoch))
    except InvariantError:
        return False
    return True


def test_every_transition_is_legal_only_where_the_table_has_it() -> None:
    """All 6 x 9 x 6 roles and causes, in four epochs each."""
    legal = {
        (before, cause, after, name)
        for before, cause, after in itertools.product(RoleName, Cause, RoleName)
        for name, epoch in EPOCHS.items()
        if is_legal(before, cause, after, epoch)
    }
    assert legal == {
        (before, cause, after, name)
        for before, by_cause in TRANSITIONS.items()
        for cause, transition in by_cause.items()
        for after in transition.next_roles
        for name in ALLOWED[transition.epoch]
    }


@pytest.mark.parametrize(
    ("before", "after", "legal"),
    [
        (U, "UPFR", "elections begin with a pre-vote"),
        (P, "UCLF", "only the only voter leads right after the pre-vote"),
        (C, "UPLF", "a candidate that runs out of time asks for pre-votes again"),
        (L, "UFR", "a leader never stands for election"),
        (F, "UPF", "a follower never leads without an election"),
        (R, "UF", "a node that has resigned waits for another epoch"),
    ],
)
def test_next_roles(before: RoleName, after: str, legal: str) -> None:
    found = {role for each in TRANSITIONS[before].values() for role in each.next_roles}
    assert {role.name[0] for role in found} == set(after), legal


@pytest.mark.parametrize(
    ("before", "after"),
    [(L, L), (L, C), (R, L), (R, F), (U, L), (U, C), (F, L), (F, C), (C, C)],
    ids=lambda role: role.name,
)
def test_illegal_within_an_epoch(before: RoleName, after: RoleName) -> None:
    for cause in Cause:
        assert not is_legal(before, cause, after, EPOCHS["same"])


def test_no_transition_goes_back_in_epochs() -> None:
    for before, cause, after in itertools.product(RoleName, Cause, RoleName):
        assert not is_legal(before, cause, after, EPOCHS["lower"])


def test_the_error_names_the_transition() -> None:
    with pytest.raises(InvariantError, match="from follower in epoch 5 to leader in epoch 5"):
        check_transition(Standing(F, 5), Cause.ELECTION_WON, Standing(L, 5))


def test_every_cause_has_a_use() -> None:
    assert {cause for by_cause in TRANSITIONS.values() for cause in by_cause} == set(Cause)


def test_the_readme_has_the_table() -> None:
    lines = [_line("role", "cause", "next role", "epoch")]
    for before, by_cause in TRANSITIONS.items():
        for cause, transition in by_cause.items():
            after = ", ".join(role.value for role in RoleName if role in transition.next_roles)
            lines.append(_line(before.value, cause.value, after, transition.epoch.value))
    assert "```text\n" + "\n".join(lines) + "\n```" in README.read_text()


def _line(before: str, cause: str, after: str, epoch: str) -> str:
    return f"{before:<12} {cause:<17} {after:<31} {epoch}"
