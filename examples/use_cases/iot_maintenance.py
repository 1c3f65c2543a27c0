"""Internet of Things: machines publish by MQTT, and a model scores which of them will fail soon.

The model is a decision tree of scikit-learn, trained on past readings. Scores go to a topic, and a
machine that is likely to fail gets an order for maintenance. It needs `pip install scikit-learn`.
"""

import json
import random

from stage import Stage

from moldau.streams import StreamsBuilder, Topology

try:
    from sklearn.tree import DecisionTreeClassifier
except ImportError:
    raise SystemExit("this example needs scikit-learn: pip install scikit-learn") from None


def reading(failing: bool) -> dict[str, float]:
    if failing:
        return {"vibration": random.uniform(6, 9), "temperature": random.uniform(75, 95)}
    return {"vibration": random.uniform(0, 4), "temperature": random.uniform(40, 70)}


def trained() -> DecisionTreeClassifier:
    past = [(reading(failing), failing) for failing in (True, False) for _ in range(200)]
    features = [list(each.values()) for each, _ in past]
    return DecisionTreeClassifier(max_depth=3, random_state=0).fit(
        features, [failing for _, failing in past]
    )


def build(model: DecisionTreeClassifier) -> Topology:
    def score(value: dict[str, float]) -> dict[str, float]:
        risk = model.predict_proba([[value["vibration"], value["temperature"]]])[0][1]
        return {**value, "risk": float(risk)}

    builder = StreamsBuilder()
    scored = builder.stream("machines", key_serde="string", value_serde="json").map_values(score)
    scored.to("scores", key_serde="string", value_serde="json")
    (
        scored.filter(lambda machine, value: value["risk"] > 0.5)
        .map(lambda machine, value: (machine.split("/")[1], {"risk": value["risk"]}))
        .group_by_key(key_serde="string", value_serde="json")
        .reduce(lambda first, again: first, store="orders")
        .to_stream()
        .to("maintenance", key_serde="string", value_serde="json")
    )
    return builder.build()


with Stage(__doc__) as stage:
    import paho.mqtt.client as mqtt

    random.seed(5)
    stage.topics("machines", "scores", "maintenance")
    stage.streams(build(trained()), "iot-maintenance")
    host, _, port = stage.service("mqtt").removeprefix("mqtt://").partition(":")
    machines, rounds = 8, 5 if stage.short else 100
    failing = {2, 6}
    device = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="gateway")
    device.connect(host, int(port))
    device.loop_start()
    published = 0
    stage.fact("readings", lambda: published)
    for _ in range(rounds):
        for machine in range(machines):
            payload = json.dumps(reading(machine in failing))
            device.publish(f"machines/{machine}/state", payload, qos=1).wait_for_publish(30)
            published += 1
    device.loop_stop()
    device.disconnect()
    stage.until_records("scores", published)
    scores = stage.read("scores")
    stage.check("every reading is scored once", len(scores) == published)
    wrong = [
        key for key, each in scores if (each["risk"] > 0.5) != (int(key.split("/")[1]) in failing)
    ]
    stage.check("the model is right about each", not wrong)
    stage.until_records("maintenance", len(failing))
    orders = {int(machine) for machine, _ in stage.read("maintenance")}
    stage.fact("to be maintained", lambda: sorted(orders))
    stage.check("maintenance is ordered for those that will fail", orders == failing)
