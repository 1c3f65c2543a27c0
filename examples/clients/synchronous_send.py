"""Sends records one at a time and waits for each: simple, safe and slow.

`result` returns the record's place in the log or raises the error that made the send fail.
"""

from common import SECONDS_MAX, begin

from moldau.client import KafkaError, Producer

bootstrap, topic, _ = begin(__doc__)

with Producer(bootstrap_servers=bootstrap) as producer:
    for city in ("Prague", "Budweis", "Krumau"):
        try:
            metadata = producer.send(topic, city, key="city").result(SECONDS_MAX)
        except KafkaError as error:
            raise SystemExit(f"{city} was not written: {error}") from error
        print(f"{city}: partition {metadata.partition}, offset {metadata.offset}")
