"""Click-stream enrichment: each click gets the country of its user, by a join with a table."""

import random

from stage import Stage, topology_of

COUNTRIES = ("cz", "at", "de")

with Stage(__doc__) as stage:
    stage.topics("users", "clicks", "enriched-clicks", partitions=2)
    users = {f"user-{number}": random.choice(COUNTRIES) for number in range(20)}
    for user, country in users.items():
        stage.send("users", user, {"country": country})
    stage.producer.flush()
    stage.streams(topology_of("click_enrichment"), "click-enrichment", max_task_idle_ms=500)
    count = 200 if stage.short else 5000
    stage.fact("clicks", lambda: count)
    for number in range(count):
        user = "stranger" if number % 50 == 0 else f"user-{number % 20}"
        stage.send("clicks", user, {"page": f"/products/{number % 7}"})
    stage.until_records("enriched-clicks", count)
    enriched = stage.read("enriched-clicks")
    stage.fact("enriched", lambda: len(enriched))
    stage.check("every click is there once", len(enriched) == count)
    stage.check(
        "each has the country of its user",
        all(click["country"] == users.get(user, "unknown") for user, click in enriched),
    )
