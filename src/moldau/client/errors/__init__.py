"""Everything a client raises: one tree, with Kafka's code, whether to retry, and what to do.

There is a class for every error code, so both `except TopicExistsError` and
`error.code is ErrorCode.TOPIC_ALREADY_EXISTS` work, and one for what goes wrong without a broker
saying so. Retriable errors are retried inside the client until their time is over; whoever sees
one saw the last of them.
"""

from moldau.client.errors.base import *
from moldau.client.errors.broker import *
from moldau.client.errors.local import *
