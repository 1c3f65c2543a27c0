"""Counts by key with Quix Streams: bootstrap, input, output, application id, guarantee."""

import sys
import tempfile

from quixstreams import Application


def main():
    bootstrap, source, target, application_id, guarantee = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        app = Application(
            broker_address=bootstrap,
            consumer_group=application_id,
            auto_offset_reset="earliest",
            processing_guarantee=guarantee.removesuffix("_v2").replace("_", "-"),
            commit_interval=0.1,
            state_dir=folder,
            use_changelog_topics=True,
        )
        frame = app.dataframe(app.topic(source, key_deserializer="str", value_deserializer="str"))

        def count(value, state):
            total = state.get("count", 0) + 1
            state.set("count", total)
            return total

        frame = frame.apply(count, stateful=True)
        frame.to_topic(app.topic(target, key_serializer="str", value_serializer="int"))
        app.run()


if __name__ == "__main__":
    main()
