"""Keys of serializers that use a Schema Registry, named as Confluent's; the clients pass them on.

The notation is that of moldau.config.table. What a client of the registry needs for TLS has the
names of Kafka's `ssl.` keys behind `schema.registry.`.
"""

from __future__ import annotations

from moldau.client.config.common_keys import COMMON_TABLE

__all__ = ["REGISTRY_KEYS", "REGISTRY_TABLE"]

_PREFIX = "schema.registry."

_TABLE = """\
schema.registry.url                     list     []          h
basic.auth.credentials.source           string   URL         m  ~{URL,USER_INFO,SASL_INHERIT}
basic.auth.user.info                    password -           m
bearer.auth.credentials.source          string   -           m
bearer.auth.token                       password -           m
http.read.timeout.ms                    int      60000       l  >=1
max.retries                             int      3           l  >=0
latest.cache.size                       int      1000        l  >=1
latest.cache.ttl.sec                    int      -1          l  >=-1
max.schemas.per.subject                 int      1000        l  >=1
auto.register.schemas                   boolean  true        m
normalize.schemas                       boolean  false       m
use.latest.version                      boolean  false       l
use.schema.id                           int      -1          l
latest.compatibility.strict             boolean  true        l
key.subject.name.strategy               string   -           m
value.subject.name.strategy             string   -           m
subject.name.strategy                   string   -           m
subject.name.strategy.kafka.cluster.id  string   -           l
subject.name.strategy.fallback.type     string   TOPIC       l  ~{TOPIC,RECORD,TOPIC_RECORD,NONE}
reference.subject.name.strategy         string   -           l
key.schema.id.serializer                string   -           l
value.schema.id.serializer              string   -           l
json.fail.invalid.schema                boolean  true        m
rule.executors._default_.param.secret   password -           m
rule.actions.dlq.param.topic            string   -           l
validation.rules.execution string DISABLED l ~{DISABLED,BEFORE_DOMAIN_RULES,AFTER_DOMAIN_RULES}
validation.rules.fail.fast              boolean  false       l
"""

_SSL = "".join(
    f"{_PREFIX}{line}\n" for line in COMMON_TABLE.splitlines() if line.startswith("ssl.")
)
REGISTRY_TABLE = _TABLE + _SSL
#: The names alone.
REGISTRY_KEYS = tuple(line.split()[0] for line in REGISTRY_TABLE.splitlines())
