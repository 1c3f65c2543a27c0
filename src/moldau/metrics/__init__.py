"""One registry of metrics for brokers, controllers and services, and the ways out of it.

A metric is declared once, in a table (`Spec`): its MBean, kind, tags and meaning. Everything that
is printed, pushed or read back follows from the declaration.
"""

from moldau.metrics._instruments import ApiTimes as ApiTimes
from moldau.metrics._instruments import Flow as Flow
from moldau.metrics._instruments import Histogram as Histogram
from moldau.metrics._instruments import Meter as Meter
from moldau.metrics._instruments import RequestTimes as RequestTimes
from moldau.metrics._instruments import Ticker as Ticker
from moldau.metrics.names import Kind as Kind
from moldau.metrics.names import Spec as Spec
from moldau.metrics.registry import Registry as Registry
from moldau.metrics.registry import Sample as Sample
