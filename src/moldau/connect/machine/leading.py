"""Leading: what the leader of the group sends to each worker, and who runs what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from moldau.connect.machine import protocol
from moldau.connect.machine.assignment import IncrementalAssignor, eager_assignment
from moldau.connect.machine.ids import TaskId
from moldau.connect.machine.protocol import NOTHING, Assignment, Work, WorkerState


class Leading:
    """`owners` has the URL of the worker that runs a connector or task."""

    def __init__(self, max_delay_ms: int) -> None:
        self._assignor = IncrementalAssignor(max_delay_ms)
        self.owners: dict[str | TaskId, str] = {}

    def distribute(
        self,
        states: Mapping[str, WorkerState],
        base: Assignment,
        configured: Work,
        *,
        last_generation: int,
        generation: int,
        now_ms: int,
    ) -> dict[str, bytes]:
        """Assignments by member. `base` has what is the same in all of them."""
        if base.version == 0:
            whole = eager_assignment(states, configured)
            self._remember(states, whole)
            found = {each: replace(base, work=work) for each, work in whole.items()}
        else:
            held = {each: state.assignment.work for each, state in states.items()}
            plan = self._assignor.assign(
                configured,
                held,
                last_generation=last_generation,
                generation=generation,
                now_ms=now_ms,
            )
            found = {
                each: replace(
                    base,
                    work=plan.added[each],
                    revoked=plan.revoked.get(each, NOTHING),
                    delay_ms=plan.delay_ms,
                )
                for each in states
            }
            self._remember(
                states, {each: (held[each] - a.revoked) | a.work for each, a in found.items()}
            )
        return {
            each: protocol.encode_assignment(mine, base.version) for each, mine in found.items()
        }

    def _remember(self, states: Mapping[str, WorkerState], work: Mapping[str, Work]) -> None:
        self.owners = {}
        for member, each in work.items():
            self.owners.update(dict.fromkeys(each.connectors, states[member].url))
            self.owners.update(dict.fromkeys(each.tasks, states[member].url))
