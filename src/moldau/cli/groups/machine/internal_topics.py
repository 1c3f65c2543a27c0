"""Which topics are internal to a Streams application, by its topology and by their names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.client.admin.group_values import StreamsGroupDescription

__all__ = ["inferred_internal_topics", "is_inferred_internal", "is_internal_name"]

_SUFFIXES = (
    "-changelog",
    "-repartition",
    "-subscription-registration-topic",
    "-subscription-response-topic",
)
_FOREIGN_KEY_JOIN = re.compile(
    r".+-KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-\d+-topic", re.ASCII
)


def is_internal_name(topic: str) -> bool:
    """Whether Streams names its own topics like this."""
    return topic.endswith(_SUFFIXES) or _FOREIGN_KEY_JOIN.fullmatch(topic) is not None


def is_inferred_internal(topic: str, application_id: str) -> bool:
    return topic.startswith(f"{application_id}-") and is_internal_name(topic)


def inferred_internal_topics(group: StreamsGroupDescription) -> list[str]:
    """Changelogs and repartition topics of the topology that are not also its input."""
    sources = {topic for each in group.subtopologies for topic in each.source_topics}
    made = [
        topic
        for each in group.subtopologies
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
    ]
    return [topic for topic in dict.fromkeys(made) if topic not in sources]
