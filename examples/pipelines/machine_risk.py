"""Scores readings of machines with a model of scikit-learn, and writes the risks to a topic.

    moldau start &
    python examples/pipelines/machine_risk.py
    moldau pipelines top

It trains a small model from made-up readings, stores it in data/risk.joblib, and starts a pipeline
with a score step. It needs `pip install scikit-learn`.
"""

from __future__ import annotations

import random
from pathlib import Path

from moldau.pipelines import Pipeline, Pipelines, Score, Topic

FEATURES = ["temperature", "vibration"]
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
    joblib.dump(model.fit(pandas.DataFrame(rows, columns=FEATURES), failed), path)


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


def main() -> None:
    model = Path("data/risk.joblib").resolve()
    train(model)
    with Pipelines("127.0.0.1:9092") as pipelines:
        print(pipelines.start(machine_risk(model)).state)


if __name__ == "__main__":
    main()
