"""Sends records and does not look at the outcome.

The producer still retries, but nobody learns of a record that failed for good.
"""

from common import begin

from moldau.client import Producer

bootstrap, topic, _ = begin(__doc__)

with Producer(bootstrap_servers=bootstrap) as producer:
    for number in range(10):
        producer.send(topic, f"event {number}", key=str(number))
# Leaving the block closes the producer, which sends what is still buffered.
print("sent 10 records, outcome unknown")
