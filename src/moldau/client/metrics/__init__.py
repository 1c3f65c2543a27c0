"""Kafka's client metrics: `client.metrics()` gives them by name."""

from moldau.client.metrics._stats import Windows as Windows
from moldau.client.metrics.groups import ADMIN as ADMIN
from moldau.client.metrics.groups import CONSUMER as CONSUMER
from moldau.client.metrics.groups import PRODUCER as PRODUCER
from moldau.client.metrics.groups import SHARE_CONSUMER as SHARE_CONSUMER
from moldau.client.metrics.groups import ConsumerMetrics as ConsumerMetrics
from moldau.client.metrics.groups import NetworkMetrics as NetworkMetrics
from moldau.client.metrics.groups import ProducerMetrics as ProducerMetrics
from moldau.client.metrics.groups import ShareConsumerMetrics as ShareConsumerMetrics
from moldau.client.metrics.groups import add_app_info as add_app_info
from moldau.client.metrics.registry import KafkaMetric as KafkaMetric
from moldau.client.metrics.registry import MetricName as MetricName
from moldau.client.metrics.registry import MetricReporter as MetricReporter
from moldau.client.metrics.registry import Metrics as Metrics
from moldau.client.metrics.registry import Sensor as Sensor
from moldau.client.metrics.registry import resolve_reporters as resolve_reporters
