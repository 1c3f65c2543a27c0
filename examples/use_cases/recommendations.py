"""Recommendations: what others bought with it, from a table that every instance holds whole."""

from collections import Counter, defaultdict
from itertools import permutations

from stage import Stage, latest

from moldau.streams import StreamsBuilder, Topology

BASKETS = [
    ("tent", "sleeping bag", "lamp"),
    ("tent", "lamp"),
    ("boots", "socks"),
    ("boots", "socks", "tent"),
    ("lamp", "batteries"),
]


def build() -> Topology:
    builder = StreamsBuilder()
    related = builder.global_table(
        "related", key_serde="string", value_serde="json", store="related"
    )
    (
        builder.stream("views", key_serde="string", value_serde="json")
        .left_join(
            related,
            lambda view, items: {**view, "suggest": items or []},
            key=lambda visitor, view: view["item"],
        )
        .to("suggestions", key_serde="string", value_serde="json")
    )
    return builder.build()


with Stage(__doc__) as stage:
    stage.topics("related", cleanup_policy="compact")
    stage.topics("views", "suggestions", partitions=3)
    together: dict[str, Counter[str]] = defaultdict(Counter)
    for basket in BASKETS:
        for item, other in permutations(basket, 2):
            together[item][other] += 1
    expected = {
        item: [other for other, _ in sorted(counts.items(), key=lambda each: (-each[1], each[0]))][
            :2
        ]
        for item, counts in together.items()
    }
    for item, others in expected.items():
        stage.send("related", item, others)
    stage.producer.flush()
    stage.streams(build(), "recommendations", num_stream_threads=2)
    count = 60 if stage.short else 3000
    items = [*expected, "umbrella"]
    for number in range(count):
        stage.send("views", f"visitor-{number}", {"item": items[number % len(items)]})
    stage.until_records("suggestions", count)
    suggested = stage.read("suggestions")
    stage.fact("views", lambda: count)
    stage.fact("for a tent", lambda: expected["tent"])
    stage.check("every view has suggestions", len(latest(suggested)) == count)
    stage.check(
        "they are what others bought with it",
        all(view["suggest"] == expected.get(view["item"], []) for _, view in suggested),
    )
