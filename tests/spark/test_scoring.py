"""A pipeline that scores its records with a model of scikit-learn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from moldau.client import Producer
from moldau.pipelines import Pipeline, Score, Topic, build
from spark.running import committed, finished

SCHEMA = "id INT, warmth DOUBLE, shake DOUBLE"


def test_records_are_scored_and_bad_ones_take_their_own_way(
    spark: Any, bootstrap: str, topic: str, tmp_path: Path, checkpoint: str
) -> None:
    import joblib
    import pandas as pd
    from sklearn.tree import DecisionTreeClassifier

    rows = pd.DataFrame([[20.0, 0.1], [25.0, 0.2], [90.0, 3.0]], columns=["warmth", "shake"])
    joblib.dump(DecisionTreeClassifier().fit(rows, [0, 0, 1]), tmp_path / "risk.joblib")
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number, (warmth, shake) in enumerate([(21.0, 0.1), (95.0, 3.5), (None, 1.0)]):
            producer.send(topic, json.dumps({"id": number, "warmth": warmth, "shake": shake}))
        producer.send(topic, "no reading")
    model = str(tmp_path / "risk.joblib")
    pipeline = Pipeline(
        "risk",
        source=Topic(
            topic, schema="id INT, warmth DOUBLE, shake DOUBLE", startingOffsets="earliest"
        ),
        steps=[
            Score(model, ("warmth", "shake"), into="risk", method="predict_proba"),
            "SELECT id, risk FROM input",
        ],
        sink=Topic(f"{topic}-risk", options={"ignoreNullFields": False}),
        dead_letter=f"{topic}-dead",
        trigger="available now",
    )
    finished(lambda: build.start(spark, pipeline, bootstrap=bootstrap, checkpoint=checkpoint))
    found = [json.loads(record.value or b"") for record in committed(bootstrap, f"{topic}-risk")]
    assert sorted(found, key=lambda row: int(row["id"])) == [
        {"id": 0, "risk": 0.0},
        {"id": 1, "risk": 1.0},
        {"id": 2, "risk": None},
    ]
    assert [record.value for record in committed(bootstrap, f"{topic}-dead")] == [b"no reading"]
