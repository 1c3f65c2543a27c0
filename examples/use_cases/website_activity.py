"""Website activity: page views, searches and clicks, counted live and loaded every hour by Spark.

Two pipelines write what has arrived since their last run, as Parquet files by day and hour and as a
Delta table. They run once here, as a scheduler would run them every hour.
"""

import random
import subprocess
import sys

from stage import Stage, latest

from moldau.streams import StreamsBuilder, Topology

# A machine with other load takes minutes to start Spark and its Python workers.
SPARK_SECONDS_MAX = 300
KINDS = ("page-views", "searches", "clicks")
PIPELINE = """\
name: {name}
source:
  topics: [page-views, searches, clicks]
  format: json
  schema: visitor STRING, kind STRING, page STRING, at TIMESTAMP
  startingOffsets: earliest
steps:
  - sql: SELECT *, to_date(at) AS day, hour(at) AS hour FROM input
sink: {{{sink}}}
trigger: available now
errors: ignore
"""


def build() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("page-views", key_serde="string", value_serde="json")
        .group_by(lambda _, view: view["page"], key_serde="string", value_serde="json")
        .count(store="views-per-page")
        .to_stream()
        .to("views-per-page", key_serde="string", value_serde="long")
    )
    return builder.build()


with Stage(__doc__) as stage:
    stage.topics(*KINDS, partitions=2)
    stage.topics("views-per-page")
    stage.streams(build(), "website-activity")

    def moldau(*words: str) -> None:
        command = [sys.executable, "-m", "moldau.cli", *words]
        done = subprocess.run(
            command, cwd=stage.folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}: {done.stdout}{done.stderr}")

    random.seed(1)
    count = 300 if stage.short else 20_000
    views = 0
    stage.fact("events", lambda: count)
    for number in range(count):
        kind = random.choices(KINDS, (6, 1, 3))[0]
        views += kind == "page-views"
        at = f"2026-03-12T{number * 3 // count + 10}:15:00Z"
        event = {"visitor": f"v{number % 40}", "kind": kind, "page": f"/{number % 5}", "at": at}
        stage.send(kind, event["visitor"], event)
    stage.producer.flush()
    stage.until(
        lambda: sum(latest(stage.read("views-per-page", "long")).values()) == views,
        "all views are counted",
    )
    counted = latest(stage.read("views-per-page", "long"))
    stage.fact("views per page", lambda: counted)
    stage.check("the live counts are exact", sum(counted.values()) == views)

    stage.say("starting Spark")
    moldau("spark", "start", "--bootstrap-server", stage.bootstrap)
    try:
        for name, sink in (
            ("hourly-parquet", f"parquet: {stage.folder}/activity, partitionBy: [day, hour]"),
            ("hourly-delta", f"delta: {stage.folder}/delta"),
        ):
            file = stage.folder / f"{name}.yaml"
            file.write_text(PIPELINE.format(name=name, sink=sink))
            moldau("pipelines", "start", str(file), "--timeout", str(SPARK_SECONDS_MAX))

        import pyarrow.dataset
        from deltalake import DeltaTable

        def loaded() -> tuple[int, int]:
            try:
                files = pyarrow.dataset.dataset(stage.folder / "activity", partitioning="hive")
                table = DeltaTable(str(stage.folder / "delta"))
                return files.count_rows(), table.to_pyarrow_dataset().count_rows()
            except Exception:  # Nothing is written yet.
                return 0, 0

        stage.until(
            lambda: loaded() == (count, count), "both loads are complete", SPARK_SECONDS_MAX
        )
        stage.fact("loaded", loaded)
        stage.check("every event is in the Parquet files and the Delta table once", True)
        hours = {path.name for path in (stage.folder / "activity").glob("day=*/hour=*")}
        stage.check("files are by hour", hours == {"hour=10", "hour=11", "hour=12"})
    finally:
        moldau("spark", "stop")
