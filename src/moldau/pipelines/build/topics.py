"""Creates the topics that a pipeline writes to before it starts.

Clusters that create topics automatically would do so at the first record, others never; and a
reader of a result that does not exist yet would get the error that there is no such topic.
"""

from __future__ import annotations

from collections.abc import Mapping

from moldau.client import Admin
from moldau.client.config import ADMIN_KEYS, keys_of
from moldau.pipelines.definition import Pipeline, Topic

CREATE_SECONDS_MAX = 30.0


def make_topics(pipeline: Pipeline, *, bootstrap: str) -> None:
    """Makes what is missing, with the brokers' defaults.

    Raises what the client raises if the cluster cannot be reached. A topic that may not be made is
    none of our business: it may be there, and if not, the first write says so.
    """
    sinks = [sink for sink in pipeline.ends().values() if isinstance(sink, Topic)]
    wanted = [topic for sink in sinks for topic in sink.written]
    if pipeline.dead_letter is not None:
        wanted.append(pipeline.dead_letter)
    if not wanted:
        return
    with Admin(_config(pipeline.kafka, bootstrap)) as admin:
        missing = set(wanted) - set(admin.list_topics(timeout=CREATE_SECONDS_MAX))
        if missing:
            admin.create_topics(sorted(missing), timeout=CREATE_SECONDS_MAX, check=False)


def _config(kafka: Mapping[str, str], bootstrap: str) -> dict[str, str]:
    return {"bootstrap.servers": bootstrap, **keys_of(ADMIN_KEYS, kafka)}
