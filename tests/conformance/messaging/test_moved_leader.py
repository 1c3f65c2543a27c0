"""A queue whose partition gets another leader while a consumer has a message."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.client import Admin
from moldau.messaging import AcknowledgeMode, ConnectionFactory
from moldau.messaging.feed import ShareFeed
from moldau.testing import Cluster
from support.messaging import WAIT_S, send, texts
from support.waiting import eventually

CONFIG = {
    "group.share.min.heartbeat.interval.ms": 100,
    "group.share.heartbeat.interval.ms": 100,
    "group.share.assignment.interval.ms": 0,
}


@pytest.mark.long("a cluster whose leader dies")
def test_a_message_stays_with_its_consumer_when_the_leader_dies() -> None:
    """The new leader delivers it again, to the same feed, which has given it to somebody."""
    with Cluster(config=CONFIG) as cluster:
        factory = ConnectionFactory(bootstrap_servers=cluster.bootstrap_servers)
        with factory.create_connection() as connection:
            connection.start()
            session = connection.create_session(AcknowledgeMode.CLIENT)
            cluster.create_topic("jobs")
            queue = session.create_queue("jobs")
            consumer = session.create_consumer(queue)
            send(session, queue, "first")
            message: Any = consumer.receive(WAIT_S)
            feed = consumer.feed
            assert isinstance(feed, ShareFeed)
            (token,) = feed._tokens.values()
            given = token.record
            cluster.leader("jobs").kill()
            eventually(lambda: token.record is not given, what="it was delivered again")
            send(session, queue, "second")
            assert texts(consumer, 1) == ["second"]
            message.acknowledge()
            assert feed.refused == 0
            with Admin(bootstrap_servers=cluster.bootstrap_servers) as admin:
                found = admin.list_share_group_offsets("queue:jobs")["queue:jobs"]
            assert [each.lag for each in found.values()] == [0]
