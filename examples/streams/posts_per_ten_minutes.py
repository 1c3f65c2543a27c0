"""Posts per hashtag in windows of ten minutes.

Topics: `posts`, text; `posts-per-hashtag` gets the count of each hashtag and window.
"""

from __future__ import annotations

import re

from moldau.streams import StreamsBuilder, TimeWindows, Topology

HASHTAG = re.compile(r"#(\w+)")
TEN_MINUTES = 10 * 60 * 1000


def build() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("posts", key_serde="string", value_serde="string")
        .flat_map_values(lambda post: sorted(set(HASHTAG.findall(post.lower()))))
        .group_by(lambda key, tag: tag, key_serde="string", value_serde="string")
        .windowed_by(TimeWindows(size=TEN_MINUTES, grace=60_000))
        .count(store="posts-per-tag")
        .to_stream()
        .map(lambda tag, count: (f"{tag.key}@{tag.window.start}", count))
        .to("posts-per-hashtag", key_serde="string", value_serde="long")
    )
    return builder.build()
