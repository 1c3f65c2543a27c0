"""Scores readings of machines with a model of scikit-learn, and writes the risks to a topic.

    moldau start --spark
    python examples/pipelines/machine_risk.py     # in another terminal, in the same directory

It trains a small model from made-up readings, stores it in data/risk.joblib, starts a pipeline with
a score step, sends readings of three machines and prints those that are at risk. The pipeline keeps
running: `moldau pipelines top` shows it, `moldau pipelines stop machine-risk` stops it. It needs
`pip install scikit-learn`.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

from moldau.client import Admin, Consumer, NewTopic, Producer
from moldau.pipelines import Pipeline, Pipelines, Score, Topic

SERVERS = os.environ.get("MOLDAU_BOOTSTRAP_SERVERS", "127.0.0.1:9092")
FEATURES = ("temperature", "vibration")
SCHEMA = "machine STRING, temperature DOUBLE, vibration DOUBLE"


def train(path: Path) -> None:
    """A decision tree over readings of which it is known whether the machine failed soon after."""
    import joblib
    import pandas
    from sklearn.tree import DecisionTreeClassifier

    chance = random.Random(1)
    rows = [(chance.uniform(20, 100), chance.uniform(0, 5)) for _ in range(500)]
    failed = [int(temperature > 80 and vibration > 2) for temperature, vibration in rows]
    model = DecisionTreeClassifier(max_depth=4, random_state=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    joblib.dump(model.fit(pandas.DataFrame(rows, columns=list(FEATURES)), failed), path)


def machine_risk(model: Path) -> Pipeline:
    return Pipeline(
        "machine-risk",
        source=Topic("readings", schema=SCHEMA, startingOffsets="earliest"),
        steps=[
            Score(str(model), FEATURES, into="risk", method="predict_proba"),
            "SELECT machine, risk FROM input WHERE risk > 0.5",
        ],
        sink=Topic("machine-risk", key="machine"),
        dead_letter="readings-dead-letter",
    )


def send_readings() -> None:
    readings = [("press", 95.0, 3.5), ("lathe", 40.0, 0.3), ("drill", 90.0, 4.5)]
    with Producer(bootstrap_servers=SERVERS) as producer:
        for machine, temperature, vibration in readings:
            reading = {"machine": machine, "temperature": temperature, "vibration": vibration}
            producer.send("readings", json.dumps(reading))


def print_risks(count: int) -> None:
    with Consumer(
        bootstrap_servers=SERVERS,
        group_id="machine-risk-readers",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        value_deserializer="string",
    ) as consumer:
        consumer.subscribe(["machine-risk"])
        for _, record in zip(range(count), consumer, strict=False):
            print(record.value)


def main() -> None:
    model = Path("data/risk.joblib").resolve()
    train(model)
    with Admin(bootstrap_servers=SERVERS) as admin:
        missing = {"readings", "machine-risk"} - set(admin.list_topics())
        admin.create_topics([NewTopic(name) for name in sorted(missing)])
    with Pipelines(SERVERS) as pipelines:
        print("machine-risk is", pipelines.start(machine_risk(model)).state)
    send_readings()
    print_risks(2)


if __name__ == "__main__":
    main()
