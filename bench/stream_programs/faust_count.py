"""Counts by key with Faust: bootstrap, input, output, application id, guarantee."""

import sys
import tempfile

import faust

bootstrap, source, target, application_id, guarantee = sys.argv[1:6]
app = faust.App(
    application_id,
    broker=f"kafka://{bootstrap}",
    datadir=tempfile.mkdtemp(),
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


@app.agent(inputs)
async def count(stream):
    async for key, _ in stream.items():
        name = key.decode()
        counts[name] += 1
        await outputs.send(key=key, value=str(counts[name]).encode())


if __name__ == "__main__":
    sys.argv = [sys.argv[0], "worker", "--without-web", "-l", "warn"]
    app.main()
