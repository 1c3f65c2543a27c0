"""Ends a consumer that waits in `poll`, on Ctrl-C or SIGTERM, without losing its place.

`wakeup` is the only method that another thread or a signal handler may call.
"""

import os
import signal
import threading

from common import begin

from moldau.client import Consumer, Producer, WakeupError

bootstrap, topic, _ = begin(__doc__)
with Producer(bootstrap_servers=bootstrap) as producer:
    producer.send(topic, "the only record")

consumer = Consumer(
    bootstrap_servers=bootstrap,
    group_id=topic,
    auto_offset_reset="earliest",
    enable_auto_commit=False,
)
signal.signal(signal.SIGTERM, lambda number, frame: consumer.wakeup())
try:
    consumer.subscribe([topic])
    while True:
        for record in consumer.poll(60.0):
            print("processed:", record.value.decode())
            # Stands for whoever stops this program.
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
except WakeupError:
    print("woken up")
finally:
    consumer.commit_sync()
    consumer.close()
    print("committed, left the group")
