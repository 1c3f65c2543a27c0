"""The keys of a registry's properties file, named as Confluent's.

`kafkastore.KEY` beside these is a setting of the clients, such as `kafkastore.security.protocol`;
`kafkastore.topic.config.KEY` is one of the topic; `rule.executors._default_.param.KEY` is one of a
KMS that keeps shared KEKs. `subject.permissions.file` is not Confluent's.
"""

from __future__ import annotations

from typing import Final

from moldau.http.keys import http_keys

__all__ = [
    "BUILT_IN",
    "DEFAULT_PORT",
    "KMS_PREFIX",
    "NOT_SUPPORTED",
    "NO_EFFECT",
    "REFUSED",
    "REGISTRY_KEYS",
    "STORE_PREFIX",
]

DEFAULT_PORT: Final = 8081
STORE_PREFIX: Final = "kafkastore."
#: As serializers have it.
KMS_PREFIX: Final = "rule.executors._default_.param."

_TABLE = """
associations.enable                    boolean  true        l
avro.compatibility.level               string   ""          m
context.search.default.limit           int      2147483647  l  >=1
context.search.max.limit               int      2147483647  l  >=1
dek.registry.max.keys                  int      20000       l  >=0
dek.registry.topic                     string   _dek_registry_keys h
dek.subject.search.default.limit       int      2147483647  l  >=1
dek.subject.search.max.limit           int      2147483647  l  >=1
dek.version.search.default.limit       int      2147483647  l  >=1
dek.version.search.max.limit           int      2147483647  l  >=1
host.name                              string   ""          h
host.port                              int      -           l
inter.instance.protocol                string   http        l  {http,https}
inter.instance.listener.name           string   ""          l
kafkagroup.heartbeat.interval.ms       int      3000        l  >=1
kafkagroup.rebalance.timeout.ms        int      300000      l  >=1
kafkagroup.session.timeout.ms          int      10000       l  >=1
kafkastore.bootstrap.servers           list     []          m
kafkastore.init.timeout.ms             int      60000       m  >=0
kafkastore.timeout.ms                  int      5000        m  >=0
kafkastore.topic                       string   _schemas    h
kafkastore.topic.replication.factor    int      3           h  >=1
kafkastore.topic.skip.validation       boolean  false       m
kek.search.default.limit               int      2147483647  l  >=1
kek.search.max.limit                   int      2147483647  l  >=1
leader.connect.timeout.ms              int      60000       l  >=1
leader.election.sticky                 boolean  false       l
leader.eligibility                     boolean  true        m
leader.read.timeout.ms                 int      60000       l  >=1
master.eligibility                     boolean  -           m
mode.mutability                        boolean  true        l
schema.cache.size                      int      1000        l  >=1
schema.compatibility.level             string   backward    m
schema.registry.group.id               string   schema-registry m
schema.reject.empty.subject            boolean  false       l
schema.search.default.limit            int      1000        l  >=1
schema.search.max.limit                int      1000        l  >=1
schema.validate.fields                 boolean  false       l
subject.permissions.file               string   -           m
subject.search.default.limit           int      2147483647  l  >=1
subject.search.max.limit               int      2147483647  l  >=1
subject.version.search.default.limit   int      2147483647  l  >=1
subject.version.search.max.limit       int      2147483647  l  >=1
"""

REGISTRY_KEYS: Final = http_keys(_TABLE)

#: What Confluent's own files name: the keys are here without it.
BUILT_IN: Final = "io.confluent.dekregistry.DekRegistryResourceExtension"
_PLUG_IN: Final = "Java plug-ins cannot be loaded: remove the key"
#: Keys that must not be set, with the reason.
REFUSED: Final = {
    "resource.extension.class": _PLUG_IN,
    "schema.registry.resource.extension.class": _PLUG_IN,
    "init.resource.extension.class": _PLUG_IN,
    "schema.providers": _PLUG_IN,
    "kafkastore.update.handlers": _PLUG_IN,
    "dek.registry.update.handlers": _PLUG_IN,
    "kafkastore.connection.url": "ZooKeeper is not supported: set kafkastore.bootstrap.servers",
}
_ENCODER: Final = "sensitive metadata is stored as it is, not encrypted"
#: Keys that Confluent's own files have and that do nothing here, with the reason.
NOT_SUPPORTED: Final = {
    "metadata.encoder.secret": _ENCODER,
    "metadata.encoder.old.secret": _ENCODER,
    "metadata.encoder.topic": _ENCODER,
}
#: Keys that change nothing here.
NO_EFFECT: Final = frozenset(
    {
        "debug",
        "enable.fips",
        "enable.store.health.check",
        "inter.instance.headers.whitelist",
        "kafkastore.checkpoint.dir",
        "kafkastore.checkpoint.version",
        "kafkastore.group.id",
        "kafkastore.init.wait.for.reader",
        "kafkastore.write.max.retries",
        "leader.election.delay",
        "metrics.jmx.prefix",
        "request.logger.name",
        "schema.cache.expiry.secs",
        "schema.canonicalize.on.consume",
        "schema.validate.new.schemas",
    }
)
