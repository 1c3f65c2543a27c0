"""Word count: lines become words, words become counts, and every count is exact."""

from collections import Counter

from stage import Stage, latest, topology_of

LINES = ["the river runs to the sea", "the sea runs to the sky", "a river is a road"]

with Stage(__doc__) as stage:
    stage.topics("text", partitions=2)
    stage.topics("counts")
    stage.streams(topology_of("word_count"), "word-count")
    rounds = 20 if stage.short else 500
    sent: Counter[str] = Counter()
    counted: dict[str, int] = {}
    stage.fact("words sent", lambda: sent.total())
    stage.fact("top words", lambda: dict(Counter(counted).most_common(3)))
    for _ in range(rounds):
        for line in LINES:
            stage.send("text", None, line.encode())
            sent.update(line.split())
    stage.producer.flush()

    def all_counted() -> bool:
        counted.update(latest(stage.read("counts", "long")))
        return counted == sent

    stage.until(all_counted, "all words are counted")
    stage.check("every word has its exact count", counted == sent)
