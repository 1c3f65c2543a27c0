"""The programs with Faust; the arguments are those of the package. Its stores are in memory."""

import sys

import faust

bootstrap, source, target, application_id, guarantee, what, _, folder = sys.argv[1:]
app = faust.App(
    application_id,
    broker=f"kafka://{bootstrap}",
    datadir=folder,
    store="memory://",
    processing_guarantee="exactly_once" if guarantee != "at_least_once" else "at_least_once",
    broker_commit_interval=0.1,
    topic_partitions=1,
    consumer_auto_offset_reset="earliest",
    web_enabled=False,
)
RAW = {"key_type": bytes, "value_type": bytes, "key_serializer": "raw", "value_serializer": "raw"}
inputs = app.topic(source, **RAW)
outputs = app.topic(target, **RAW)
counts = app.Table("counts", default=int, key_type=str, value_type=int)
if what == "windowed":
    counts = counts.tumbling(5.0, expires=60.0)


async def count(stream):
    async for key, _ in stream.items():
        name = key.decode()
        counts[name] += 1
        await outputs.send(key=key, value=str(counts[name]).encode())


async def count_windows(stream):
    async for key, _ in stream.items():
        name = key.decode()
        counts[name] += 1
        await outputs.send(key=key, value=str(counts[name].current()).encode())


async def pass_on(stream):
    async for key, value in stream.items():
        if value is not None:
            await outputs.send(key=key, value=value + b"!")


app.agent(inputs)({"count": count, "windowed": count_windows, "stateless": pass_on}[what])

if __name__ == "__main__":
    sys.argv = [sys.argv[0], "worker", "--without-web", "-l", "warn"]
    app.main()
