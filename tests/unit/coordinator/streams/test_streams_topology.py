"""Topologies against the topics that exist: statuses, internal topics, and what a group keeps."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.broker.coordinator.group.machine.metadata_hash import group_hash, topic_hash
from moldau.broker.coordinator.group.machine.streams.events import InternalTopic
from moldau.broker.handlers.streams_group_heartbeat import check_topic_names
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import StreamsGroupHeartbeatRequest as Request

from .conftest import CLIENT

STALE, NO_SOURCE, BAD_COUNT, NO_INTERNAL = range(4)


def test_missing_source_topics_make_the_group_wait(
    StreamsStage: Any, statuses: Any, tasks_of: Any
) -> None:
    streams = StreamsStage(topics={})
    response = streams.join("a")
    assert statuses(response) == [NO_SOURCE]
    assert response.status[0].status_detail == "source topics are missing: in"
    assert tasks_of(response.active_tasks) == {}
    assert streams.group.state_name == "NotReady"
    streams.topics.create("in", 2)
    assert tasks_of(streams.beat("a").active_tasks) == {"0": [0, 1]}
    assert streams.group.state_name == "Stable"
    facts = streams.topics.topic("in")
    assert streams.group.metadata_hash == group_hash({"in": topic_hash(facts)})


def test_internal_topics_are_created_and_then_tasks_assigned(
    streams: Any, topology: Any, subtopology: Any, statuses: Any, tasks_of: Any
) -> None:
    streams.topology = topology(
        subtopology("0", sources=("in",), sinks=("again",)),
        subtopology("1", repartition_sources=(("again", 0),), changelogs=("log",)),
    )
    response = streams.join("a")
    assert statuses(response) == [NO_INTERNAL]
    assert response.status[0].status_detail == "internal topics are missing: again, log"
    [action] = streams.actions
    assert action.group_id == "g"
    assert action.topics == (
        InternalTopic("again", 4, -1, ()),
        InternalTopic("log", 4, 3, (("cleanup.policy", "compact"),)),
    )
    streams.topics.create("again", 4)
    assert statuses(streams.beat("a")) == [NO_INTERNAL]
    assert [topic.name for topic in streams.actions[-1].topics] == ["log"]
    streams.topics.create("log", 4)
    response = streams.beat("a")
    assert statuses(response) == []
    assert tasks_of(response.active_tasks) == {"0": [0, 1, 2, 3], "1": [0, 1, 2, 3]}


def test_members_read_why_topics_could_not_be_created(
    streams: Any, topology: Any, subtopology: Any
) -> None:
    names = ("l1", "l2", "l3", "l4")
    streams.topology = topology(subtopology(sources=("in",), changelogs=names))
    streams.join("a")
    streams.groups.on_internal_topics("g", dict.fromkeys(names, "no room"), streams.now_ms)
    detail = streams.beat("a").status[0].status_detail
    assert detail.startswith("internal topics are missing: l1, l2, l3 and 1 more; ")
    assert detail.endswith("; creation failed: l1 (no room), l2 (no room), l3 (no room) and 1 more")
    assert len(streams.actions) == 1
    # Two heartbeat intervals later it is tried again.
    streams.advance(10_000)
    assert "failed" not in streams.beat("a").status[0].status_detail
    assert len(streams.actions) == 2


@pytest.mark.parametrize(
    ("counts", "detail"),
    [
        pytest.param(
            {"in": 4, "other": 3},
            "copartitioned topics differ in their number of partitions: in=4, other=3",
            id="sources",
        ),
        pytest.param(
            {"in": 3, "other": 3},
            "repartition topic fixed is to have 4 partitions, but the topics it is copartitioned "
            "with have 3",
            id="fixed repartition topic",
        ),
        pytest.param(
            {"in": 4, "other": 4, "fixed": 4, "log": 5},
            "topic log exists with 5 partitions instead of 4",
            id="existing changelog",
        ),
    ],
)
def test_topics_that_do_not_match(
    StreamsStage: Any,
    topology: Any,
    subtopology: Any,
    statuses: Any,
    counts: dict[str, int],
    detail: str,
) -> None:
    streams = StreamsStage(topics=counts)
    streams.topology = topology(
        subtopology(
            sources=("in", "other"),
            repartition_sources=(("fixed", 4),),
            sinks=("fixed",),
            changelogs=("log",),
            copartitions=(((0, 1), (0,)),),
        )
    )
    response = streams.join("a")
    assert statuses(response) == [BAD_COUNT]
    assert response.status[0].status_detail == detail
    assert streams.actions == []


def test_copartitioned_repartition_topics_follow_the_sources(
    StreamsStage: Any, topology: Any, subtopology: Any
) -> None:
    streams = StreamsStage(topics={"in": 6, "small": 2})
    streams.topology = topology(
        subtopology("0", sources=("small",), sinks=("again",)),
        subtopology(
            "1", sources=("in",), repartition_sources=(("again", 0),), copartitions=(((0,), (0,)),)
        ),
    )
    streams.join("a")
    assert streams.actions[0].topics == (InternalTopic("again", 6, -1, ()),)


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        pytest.param({"changelog_partitions": 3}, ErrorCode.STREAMS_INVALID_TOPOLOGY, id="log"),
        pytest.param({"sources": ()}, ErrorCode.STREAMS_INVALID_TOPOLOGY, id="no source"),
        pytest.param(
            {"repartition_sources": (("r", 0),)}, ErrorCode.STREAMS_INVALID_TOPOLOGY, id="no sink"
        ),
        pytest.param(
            {"sources": (), "repartition_sources": (("r", 0),), "sinks": ("r",)},
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            id="loop",
        ),
        pytest.param(
            {"copartitions": (((7,), ()),)}, ErrorCode.UNKNOWN_SERVER_ERROR, id="no such index"
        ),
        pytest.param(
            {"copartitions": (((-1,), ()),)}, ErrorCode.UNKNOWN_SERVER_ERROR, id="negative index"
        ),
        pytest.param(
            {"repartition_sources": (("r", -1),)}, ErrorCode.UNKNOWN_SERVER_ERROR, id="count"
        ),
        pytest.param({"epoch": -1}, ErrorCode.UNKNOWN_SERVER_ERROR, id="epoch"),
        pytest.param({"twice": True}, ErrorCode.UNKNOWN_SERVER_ERROR, id="subtopology twice"),
        pytest.param({"regex": "a.*"}, ErrorCode.INVALID_REQUEST, id="regex"),
    ],
)
def test_topologies_that_are_refused(
    streams: Any, topology: Any, subtopology: Any, broken: dict[str, Any], code: ErrorCode
) -> None:
    options = {
        name: broken[name]
        for name in ("sources", "repartition_sources", "sinks", "copartitions")
        if name in broken
    }
    one = subtopology(**{"sources": ("in",), "changelogs": ("log",)} | options)
    one.state_changelog_topics[0].partitions = broken.get("changelog_partitions", 0)
    one.source_topic_regex = [broken["regex"]] if "regex" in broken else []
    every = [one, one] if broken.get("twice") else [one]
    request = streams.joining("a", topology=topology(*every, epoch=broken.get("epoch", 0)))
    assert streams.refused(request) is code
    assert streams.groups.groups == {}


def test_the_topology_stays_as_the_first_member_brought_it(
    streams: Any, topology: Any, subtopology: Any, statuses: Any
) -> None:
    one = subtopology(sources=("in",))
    streams.topology = topology(one, epoch=3)
    streams.join("a")
    changed = topology(subtopology(sources=("other",)), epoch=3)
    assert streams.refused(streams.joining("b", topology=changed)) is ErrorCode.INVALID_REQUEST
    newer = topology(one, epoch=4)
    assert streams.refused(streams.joining("b", topology=newer)) is ErrorCode.INVALID_REQUEST
    behind = streams.join("b", topology=topology(one, epoch=2))
    assert statuses(behind) == [STALE]
    assert statuses(streams.beat("b")) == [STALE]
    assert statuses(streams.beat("a")) == []


def test_more_partitions_are_more_tasks(streams: Any, tasks_of: Any) -> None:
    streams.join("a")
    streams.topics.create("unrelated", 1)
    streams.beat("a")
    assert streams.kinds == []
    streams.topics.create("in", 6)
    assert tasks_of(streams.beat("a").active_tasks) == {"0": [0, 1, 2, 3, 4, 5]}


def test_a_source_topic_that_goes_takes_the_tasks_with_it(
    streams: Any, statuses: Any, tasks_of: Any
) -> None:
    streams.join("a")
    streams.topics.delete("in")
    response = streams.beat("a", None, {"0": [0, 1, 2, 3]})
    assert statuses(response) == [NO_SOURCE]
    assert tasks_of(response.active_tasks) == {}
    assert streams.group.validated_topology_epoch == -1
    assert streams.group.state_name == "NotReady"


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", "a b", ""])
@pytest.mark.parametrize("where", ["source_topics", "repartition_sink_topics", "infos"])
def test_topic_names_no_application_may_have(topology: Any, where: str, name: str) -> None:
    one = Request.Subtopology(subtopology_id="0")
    if where == "infos":
        one.state_changelog_topics = [Request.TopicInfo(name=name)]
    else:
        setattr(one, where, [name])
    with pytest.raises(ApiError) as caught:
        check_topic_names(topology(one))
    assert caught.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_internal_topics_that_the_client_may_not_create_are_not_created(
    streams: Any, topology: Any, subtopology: Any
) -> None:
    streams.topology = topology(subtopology(sources=("in",), changelogs=("l1", "l2")))
    client = CLIENT._replace(denied_creations=lambda names: [each for each in names if each > "l1"])
    response = streams.send(streams.joining("a"), client=client)
    assert response.status[0].status_detail.endswith("; Unauthorized to CREATE on topics l2.")
    assert streams.actions == []
    streams.beat("a")
    assert [topic.name for topic in streams.actions[0].topics] == ["l1", "l2"]
