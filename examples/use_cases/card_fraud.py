"""Credit-card fraud: more than three payments of a card in five seconds, never lost, never doubled.

The application runs in a process of its own, which is killed in the middle and started again: its
results and its place in the input are committed together, so each window is reported once.
"""

import random
import time

from stage import ROOT, Stage, process

# An hour ago, at the beginning of a window. Much older state would be deleted by time.
BEGIN = int(time.time() - 3600) // 5 * 5000

with Stage(__doc__) as stage:
    stage.topics("payments", "suspicious-cards")
    random.seed(3)
    windows = 20 if stage.short else 200
    expected: dict[tuple[str, int], int] = {}
    payments: list[tuple[int, str]] = []
    for window in range(windows):
        for card in range(10):
            count = random.randint(1, 5)
            payments += [
                (BEGIN + window * 5000 + 100 * each, f"card-{card}") for each in range(count)
            ]
            if count > 3:
                expected[f"card-{card}", window] = count
    payments.sort()
    # Later payments close the last windows.
    payments += [(BEGIN + (windows + 2) * 5000, "the last card")]
    stage.fact("payments", lambda: len(payments))
    stage.fact("suspicious windows", lambda: len(expected))
    words = (
        *("-m", "moldau.cli", "streams", "start", str(ROOT / "examples/streams/card_fraud.py")),
        *("--application-id", "card-fraud", "--bootstrap-server", stage.bootstrap),
        *("--state-dir", str(stage.folder / "state"), "--property", "auto.offset.reset=earliest"),
    )
    log = stage.folder / "fraud.log"
    with process(*words, log=log) as first:
        for time_ms, card in payments[: len(payments) // 2]:
            stage.send("payments", card, {"amount": 10}, timestamp=time_ms)
        stage.until_records("suspicious-cards", 1)
        first.kill()
        stage.say("the application was killed")
    with process(*words, log=log):
        for time_ms, card in payments[len(payments) // 2 :]:
            stage.send("payments", card, {"amount": 10}, timestamp=time_ms)
        stage.until_records("suspicious-cards", len(expected))
        time.sleep(1)  # Whatever would be doubled has time to appear.
        found = stage.read("suspicious-cards", "long")
    stage.fact("reported", lambda: len(found))
    stage.check("no suspicious window is lost or reported twice", len(found) == len(expected))
    stage.check(
        "each has its count of payments",
        sorted(found) == sorted((card, count) for (card, _), count in expected.items()),
    )
