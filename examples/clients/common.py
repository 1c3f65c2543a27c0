"""What all programs of this folder begin with: the broker's address, and a topic of their own."""

from __future__ import annotations

import argparse
import uuid
from pathlib import Path
from typing import NamedTuple

from moldau.client import Admin, NewTopic

SECONDS_MAX = 30.0


class Begun(NamedTuple):
    bootstrap: str
    topic: str
    registry: str


def begin(description: str, partitions: int = 1) -> Begun:
    """Reads the arguments and creates the topic; each run has a new one unless --topic names it."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bootstrap-server", default="127.0.0.1:9092", metavar="HOST:PORT")
    parser.add_argument("--registry", default="http://127.0.0.1:8081", metavar="URL")
    parser.add_argument("--topic", help="name of the topic to create")
    given = parser.parse_args()
    program = Path(parser.prog).stem.replace("_", "-")
    topic = given.topic or f"{program}-{uuid.uuid4().hex[:6]}"
    with Admin(bootstrap_servers=given.bootstrap_server) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=partitions)])
    return Begun(given.bootstrap_server, topic, given.registry)
