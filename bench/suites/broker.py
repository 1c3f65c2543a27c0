"""One broker: throughput, fetches, latency and start, beside what the machine can do."""

from __future__ import annotations

from contextlib import ExitStack

from bench import servers, workloads
from bench.run import Row, Run

LATENCY_ROUNDS = 7
SHAPES = (
    ("1 KB, 128 KB batches", 1000, 131_072),
    ("1 KB, 16 KB batches", 1000, 16_384),
    ("100 B, 128 KB batches", 100, 131_072),
    ("100 B, 16 KB batches", 100, 16_384),
)


def throughput(run: Run) -> None:
    """Produce and consume with confluent-kafka, and what the broker's CPU pays for it."""
    produced: dict[tuple[str, str], workloads.Throughput] = {}
    consumed: dict[tuple[str, str], workloads.Throughput] = {}
    for broker in run.brokers():
        with broker() as server:
            for shape, size, batch in SHAPES:
                topic = f"bench-{size}-{batch}"
                server.create_topic(topic)
                workloads.produce(
                    server, topic, message_size=size, batch_size=batch, total_bytes=run.bytes(0.02)
                )
                result = produced[server.name, shape] = workloads.produce(
                    server,
                    topic,
                    message_size=size,
                    batch_size=batch,
                    total_bytes=run.bytes(1.0 if size == 1000 else 0.3),
                )
                consumed[server.name, shape] = workloads.consume(
                    server, topic, message_size=size, count=result.messages
                )
    with servers.produce_sink() as sink:
        for shape, size, batch in SHAPES:
            produced["sink", shape] = workloads.produce(
                sink,
                "bench",
                message_size=size,
                batch_size=batch,
                total_bytes=run.bytes(1.0 if size == 1000 else 0.3),
            )
    for shape, size, batch in SHAPES:
        kafka = produced.get(("kafka", shape))
        aim = {(1000, 131_072): ">= 0.70 of limit", (100, 131_072): ">= 0.95 of limit"}
        run.rows.append(
            Row(
                f"produce {shape}",
                "MB/s",
                produced["moldau", shape].mb_per_second,
                kafka and kafka.mb_per_second,
                produced["sink", shape].mb_per_second,
                aim.get((size, batch), ""),
            )
        )
    for shape, _, _ in SHAPES:
        kafka = consumed.get(("kafka", shape))
        run.rows.append(
            Row(
                f"consume {shape}",
                "MB/s",
                consumed["moldau", shape].mb_per_second,
                kafka and kafka.mb_per_second,
            )
        )
    big = SHAPES[0][0]
    for what, figures, aim_text in (("produce", produced, "<= 0.80"), ("consume", consumed, "")):
        kafka = figures.get(("kafka", big))
        run.rows.append(
            Row(
                f"broker CPU, {what} {big}",
                "s/GB",
                figures["moldau", big].cpu_seconds_per_gb,
                kafka and kafka.cpu_seconds_per_gb,
                None,
                aim_text,
            )
        )


def fetch(run: Run) -> None:
    """1 MB fetches over one bare socket beside a bare loopback send of as much."""
    results: dict[str, workloads.Throughput] = {}
    for broker in run.brokers():
        with broker() as server:
            server.create_topic("fetch")
            workloads.produce(
                server, "fetch", message_size=1000, batch_size=131_072, total_bytes=8_000_000
            )
            results[server.name] = workloads.raw_fetch(server, "fetch", total_bytes=run.bytes(4))
    with servers.bare_socket("send") as bare:
        results["limit"] = workloads.bare_send(bare, total_bytes=run.bytes(4))
    kafka = results.get("kafka")
    run.rows.append(
        Row(
            "raw fetch, 1 MB answers",
            "MB/s",
            results["moldau"].mb_per_second,
            kafka and kafka.mb_per_second,
            results["limit"].mb_per_second,
            ">= 0.60 of limit",
        )
    )
    run.rows.append(
        Row(
            "broker CPU, raw fetch",
            "s/GB",
            results["moldau"].cpu_seconds_per_gb,
            kafka and kafka.cpu_seconds_per_gb,
            results["limit"].cpu_seconds_per_gb,
            "<= 0.35",
        )
    )


def latency(run: Run) -> None:
    """One synchronous 100 B produce at a time, beside an echo of the same size.

    A round trip has two modes here, depending on where the system puts the two processes, so all
    servers take turns and the best round of each counts.
    """
    count = max(1000, int(4_000 * run.scale))
    frame = workloads.produce_frame("latency")
    best: dict[str, workloads.Latency] = {}
    with ExitStack() as running:
        measured = [running.enter_context(broker()) for broker in run.brokers()]
        for server in measured:
            server.create_topic("latency")
            workloads.round_trips(server, frame, count=count)
        measured.append(running.enter_context(servers.bare_socket("echo")))
        for _ in range(LATENCY_ROUNDS):
            for server in measured:
                result = workloads.round_trips(server, frame, count=count)
                if server.name not in best or result.p50_us < best[server.name].p50_us:
                    best[server.name] = result
    kafka, echo = best.get("kafka"), best["echo"]
    run.rows.append(
        Row(
            "synchronous produce p50",
            "us",
            best["moldau"].p50_us,
            kafka and kafka.p50_us,
            echo.p50_us,
            "<= 2.0 of limit",
        )
    )
    run.rows.append(
        Row(
            "synchronous produce p99",
            "us",
            best["moldau"].p99_us,
            kafka and kafka.p99_us,
            echo.p99_us,
        )
    )


def start(run: Run) -> None:
    """Process start to the first acknowledged produce, and memory when idle after it."""
    seconds: dict[str, float] = {}
    memory: dict[str, float] = {}
    for broker in run.brokers():
        with broker() as server:
            seconds[server.name] = workloads.first_acknowledged_seconds(server, server.started)
            memory[server.name] = server.memory_mb()
    run.rows.append(
        Row(
            "start to first acknowledged produce",
            "s",
            seconds["moldau"],
            seconds.get("kafka"),
            None,
            "<= 0.50",
        )
    )
    run.rows.append(Row("idle memory", "MB", memory["moldau"], memory.get("kafka"), None, "<= 80"))
