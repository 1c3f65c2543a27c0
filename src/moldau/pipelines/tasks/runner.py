"""Runs one small pipeline: polls, converts, and commits records and offsets in one transaction.

Exactly once: the transactional id is the pipeline's own, so a second runner fences the first, and
offsets are committed with the records they gave. A record of which it is not certain what Spark
would make of it ends the work here: everything before it is committed, and the pipeline is handed
over to Spark from exactly that record on.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, Final

from moldau.client import Consumer, OffsetAndMetadata, Producer, TopicPartition
from moldau.client.config import CONSUMER_KEYS, PRODUCER_KEYS, keys_of
from moldau.pipelines.build.environment import with_environment
from moldau.pipelines.build.topics import make_topics
from moldau.pipelines.definition import Pipeline
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.tasks.machine.expressions import Uncertain
from moldau.pipelines.tasks.machine.plan import TaskPlan, plan_of
from moldau.spark.hosting.context import HostedContext

__all__ = ["DEFINITION", "HANDOVER", "PROGRAM", "PROGRESS", "run"]

#: What the control loop starts.
PROGRAM: Final = "moldau.pipelines.tasks.runner:run"
#: The setting with the pipeline; all others say how to reach the cluster.
DEFINITION: Final = "definition"
#: What it reports: why Spark has to take over, and how far it is.
HANDOVER: Final = "handover"
PROGRESS: Final = "progress"
_POLL_SECONDS: Final = 1.0
_TOPICS_SECONDS: Final = 30.0
_CLOSE_SECONDS_MAX: Final = 10.0
_TRANSACTION_MS: Final = 15_000
_RECORDS_MAX: Final = 2_000
_FETCH_WAIT_MS: Final = 5_000

Offsets = dict[TopicPartition, OffsetAndMetadata]


def run(context: HostedContext) -> None:
    """Until the pipeline is to stop."""
    settings = dict(context.settings)
    pipeline = with_environment(Pipeline.from_json(settings.pop(DEFINITION)))
    plan = plan_of(pipeline.to_json())
    make_topics(pipeline, bootstrap=settings["bootstrap.servers"])
    connection = {**settings, **pipeline.kafka}
    consumer = Consumer(
        {
            "max.poll.records": _RECORDS_MAX,
            # Records are answered at once; without any, few questions cost little.
            "fetch.max.wait.ms": _FETCH_WAIT_MS,
            **keys_of(CONSUMER_KEYS, connection),
            "group.id": plan.group,
            "enable.auto.commit": False,
            "auto.offset.reset": "none",
            "client.id": f"{context.application}-task",
        }
    )
    producer = Producer(
        {
            "transaction.timeout.ms": _TRANSACTION_MS,
            **keys_of(PRODUCER_KEYS, connection),
            "transactional.id": f"moldau-task-{context.application}",
            "client.id": f"{context.application}-task",
        }
    )
    try:
        _Task(context, plan, consumer, producer).run()
    finally:
        producer.close(timeout=_CLOSE_SECONDS_MAX)
        consumer.close()


class _Task:
    def __init__(
        self,
        context: HostedContext,
        plan: TaskPlan,
        consumer: Consumer[Any, Any],
        producer: Producer,
    ) -> None:
        self._context = context
        self._plan = plan
        self._consumer = consumer
        self._producer = producer
        self._batch = 0
        self._topics_due = 0.0
        self._partitions: set[TopicPartition] = set()

    def run(self) -> None:
        # First: it ends what a predecessor has left open, so the offsets read next are final.
        self._producer.init_transactions()
        stopping = self._context.stopping
        while not stopping.is_set():
            self._follow_topics()
            records = self._consumer.poll(_POLL_SECONDS)
            if not records:
                continue
            began = time.monotonic()
            count, written, problem = self._convert(records)
            took = max(time.monotonic() - began, 1e-6)
            self._report(count, written, took)
            if problem is not None:
                self._context.log.warning("%s", problem)
                self._context.report(**{HANDOVER: problem})
                stopping.wait()
                return
            rest = self._plan.interval_ms / 1000 - (time.monotonic() - began)
            if rest > 0:
                stopping.wait(rest)

    def _convert(self, records: Any) -> tuple[int, int, str | None]:
        """One transaction; how many records it took and wrote, and why it did not take all."""
        send, convert, sink = self._producer.send, self._plan.convert, self._plan.sink
        ends = records.next_offsets()
        offsets: Offsets = {}
        problem = None
        count = written = 0
        self._producer.begin_transaction()
        for key, found in records.items():
            for record in found:
                try:
                    made = convert(record.value)
                except Uncertain as error:
                    offsets[key] = OffsetAndMetadata(record.offset)
                    place = f"{record.topic}-{record.partition} at offset {record.offset}"
                    problem = f"record {place} needs Spark: {error}"
                    break
                count += 1
                if made is not None:
                    send(sink, made[1], made[0])
                    written += 1
            if problem is not None:
                break
            offsets[key] = ends[key]
        self._commit(offsets)
        return count, written, problem

    def _commit(self, offsets: Offsets) -> None:
        self._producer.send_offsets_to_transaction(offsets, self._consumer.group_metadata())
        self._producer.commit_transaction()
        self._batch += 1

    def _follow_topics(self) -> None:
        """Find new partitions, and where to read all of them from."""
        if time.monotonic() < self._topics_due:
            return
        self._topics_due = time.monotonic() + _TOPICS_SECONDS
        found: set[TopicPartition] = set()
        for topic in self._plan.topics:
            infos = self._consumer.partitions_for(topic)
            if not infos:
                raise PipelineError(f"there is no topic {topic}", retriable=True)
            found |= {TopicPartition(topic, each.partition) for each in infos}
        if found == self._partitions:
            return
        known = self._consumer.committed(found)
        new = [key for key in found if known[key] is None]
        is_first = len(new) == len(found)
        at_end = is_first and not self._plan.starts_at_earliest
        reader = self._consumer.end_offsets if at_end else self._consumer.beginning_offsets
        starts = reader(new) if new else {}
        positions = {key: committed for key, committed in known.items() if committed is not None}
        positions |= {key: OffsetAndMetadata(offset) for key, offset in starts.items()}
        if starts:
            self._producer.begin_transaction()
            self._commit({key: positions[key] for key in starts})
        here = {key: self._consumer.position(key) for key in self._partitions}
        self._consumer.assign(found)
        for key in found:
            self._consumer.seek(key, here.get(key, positions[key].offset))
        self._partitions = found

    def _report(self, count: int, written: int, seconds: float) -> None:
        """In the form of Spark's progress, so that it is read in one way."""
        ends: dict[str, dict[str, int]] = {}
        latest: dict[str, dict[str, int]] = {}
        for key in self._partitions:
            position = self._consumer.position(key)
            lag = self._consumer.current_lag(key) or 0
            ends.setdefault(key.topic, {})[str(key.partition)] = position
            latest.setdefault(key.topic, {})[str(key.partition)] = position + lag
        progress = {
            "batchId": self._batch,
            "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
            "durationMs": {"triggerExecution": round(seconds * 1000)},
            "sink": {"numOutputRows": written},
            "sources": [
                {
                    "numInputRows": count,
                    "processedRowsPerSecond": round(count / seconds, 1),
                    "endOffset": ends,
                    "latestOffset": latest,
                }
            ],
        }
        self._context.report(**{PROGRESS: progress})
