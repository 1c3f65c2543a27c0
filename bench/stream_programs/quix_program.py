"""The programs with Quix Streams; the arguments are those of the package.

Its stores are on disk.
"""

import sys

from quixstreams import Application


def count(value, state):
    total = state.get("count", 0) + 1
    state.set("count", total)
    return total


def main():
    bootstrap, source, target, application_id, guarantee, what, _, folder = sys.argv[1:]
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
    serializer = "int"
    if what == "stateless":
        frame = frame.filter(lambda value: value is not None).apply(lambda value: value + "!")
        serializer = "str"
    elif what == "count":
        frame = frame.apply(count, stateful=True)
    else:
        windows = frame.tumbling_window(5_000, grace_ms=1_000).count().current()
        frame = windows.apply(lambda window: window["value"])
    frame.to_topic(app.topic(target, key_serializer="str", value_serializer=serializer))
    app.run()


if __name__ == "__main__":
    main()
