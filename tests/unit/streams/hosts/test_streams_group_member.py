"""How a thread is known in its streams group."""

from __future__ import annotations

import uuid

from moldau.streams.hosts.settings import streams_settings
from moldau.streams.hosts.streams_group import StreamsGroupMember
from moldau.streams.machine.placement import MemberState
from moldau.streams.machine.subtopologies import Plan

PROCESS = "ffffffff-ffff-ffff-ffff-ffffffffffff"


def member_id(process_id: str, number: int) -> str:
    settings = streams_settings({"application.id": "a", "bootstrap.servers": "a:1"}, {})
    member = StreamsGroupMember(
        Plan("a", [], {}, []),
        settings,
        number,
        state=lambda: MemberState(process_id=process_id),
        on_placed=lambda placed: None,
    )
    return member.member_id


def test_a_thread_keeps_its_id_and_shares_it_with_no_other() -> None:
    other = str(uuid.UUID(int=5))
    found = [member_id(process, number) for process in (PROCESS, other) for number in (1, 2)]
    again = [member_id(process, number) for process in (PROCESS, other) for number in (1, 2)]
    assert found == again
    assert len(set(found)) == 4
    assert all(str(uuid.UUID(each)) == each for each in found)
