"""Edge to centre: sites keep readings while the line is down, and the centre gets all of them.

Each site has a small broker. A mirror copies the readings of both sites to the centre, exactly
once; it is killed in the middle, as a line that fails, and started again.
"""

from stage import Stage, process

from moldau.client import Producer
from moldau.testing import Broker

SITES = ("weir", "lock")

with Stage(__doc__) as stage:
    edges = {site: stage.server(Broker(topics={"readings": 2})) for site in SITES}
    settings = stage.folder / "mm2.properties"
    settings.write_text(
        f"""\
clusters = {", ".join(SITES)}, centre
centre.bootstrap.servers = {stage.bootstrap}
centre.exactly.once.source.support = enabled
topics = readings
refresh.topics.interval.seconds = 1
"""
        + "".join(
            f"{site}.bootstrap.servers = {edge.bootstrap_servers}\n{site}->centre.enabled = true\n"
            for site, edge in edges.items()
        )
    )
    count = 100 if stage.short else 5000
    sent: dict[str, list[bytes]] = {site: [] for site in SITES}

    def measure(first: int, last: int) -> None:
        for site, edge in edges.items():
            with Producer(bootstrap_servers=edge.bootstrap_servers) as producer:
                for number in range(first, last):
                    reading = f"{site} {number}".encode()
                    producer.send("readings", reading, key=str(number % 7))
                    sent[site].append(reading)

    def arrived(site: str) -> list[bytes]:
        try:
            return [value for _, value in stage.read(f"{site}.readings", "bytes")]
        except Exception:  # The copy does not exist yet.
            return []

    for site in SITES:
        stage.fact(f"{site}: sent", lambda site=site: len(sent[site]))
        stage.fact(f"{site}: at the centre", lambda site=site: len(arrived(site)))
    words = ("-m", "moldau.cli", "mirror", "start", str(settings))
    with process(*words, log=stage.folder / "mirror.log") as mirror:
        measure(0, count // 2)
        stage.until(lambda: all(map(arrived, SITES)), "the first readings arrive")
        mirror.kill()
        stage.say("the line is down")
    measure(count // 2, count)
    with process(*words, log=stage.folder / "mirror.log"):
        stage.say("the line is up again")
        stage.until(
            lambda: all(len(arrived(site)) >= count for site in SITES), "all readings arrive"
        )
        for site in SITES:
            stage.check(
                f"every reading of the {site} is there once",
                sorted(arrived(site)) == sorted(sent[site]),
            )
