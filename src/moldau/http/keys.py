"""The keys that every HTTP service has, named as in Confluent's rest-utils.

Keys that are not Confluent's, each because something is bounded here that is not bounded there:
`max.request.body.size`, `requests.in.flight.max`, `request.bytes.in.flight.max`,
`authentication.users.file`.
"""

from __future__ import annotations

from moldau.config.definition import ConfigDef
from moldau.config.table import parse_table

__all__ = ["HTTP_KEYS", "http_keys"]

_TABLE = """
listeners                              list     []          h  *
listener.protocol.map                  list     []          l  *
response.mediatype.default             string   -           l
response.http.headers.config           string   ""          l
shutdown.graceful.ms                   int      5000        m  >=0
request.timeout.ms                     long     60000       m  >=0
idle.timeout.ms                        long     30000       m  >=1
max.request.header.size                int      8192        l  >=1024
max.request.body.size                  int      10485760    m  >=1
requests.in.flight.max                 int      1000        m  >=1
request.bytes.in.flight.max            long     268435456   m  >=1
server.connection.limit                int      10000       m  >=0
access.control.allow.origin            list     []          m  *
access.control.allow.methods           list     []          m  *
access.control.allow.headers           list     []          m  *
compression.enable                     boolean  true        l
authentication.method                  list     NONE        m  +{NONE,BASIC,BEARER}
authentication.realm                   string   ""          m
authentication.roles                   list     *           m  *
authentication.skip.paths              list     []          m  *
authentication.users.file              string   -           m
oauthbearer.jwks.endpoint.url          string   -           m
oauthbearer.expected.issuer            string   -           m
oauthbearer.expected.audience          list     []          m  *
oauthbearer.sub.claim.name             string   sub         l
ssl.client.authentication              string   NONE        m  {NONE,REQUESTED,REQUIRED}
ssl.client.auth                        boolean  false       m
ssl.principal.mapping.rules            string   DEFAULT     l
ssl.allow.dn.changes                   boolean  true        l
ssl.allow.san.changes                  boolean  true        l
ssl.cipher.suites                      list     []          l  *
ssl.enabled.protocols                  list     TLSv1.2,TLSv1.3 m  *
ssl.endpoint.identification.algorithm  string   https       l
ssl.key.password                       password -           h
ssl.keystore.certificate.chain         password -           h
ssl.keystore.key                       password -           h
ssl.keystore.location                  string   -           h
ssl.keystore.password                  password -           h
ssl.keystore.type                      string   JKS         m
ssl.protocol                           string   TLSv1.3     m
ssl.truststore.certificates            password -           h
ssl.truststore.location                string   -           h
ssl.truststore.password                password -           h
ssl.truststore.type                    string   JKS         m
"""

_KEYS = tuple(parse_table(_TABLE))
HTTP_KEYS = ConfigDef(_KEYS)


def http_keys(table: str) -> ConfigDef:
    """The keys of a service: these and its own. An own line replaces one of these."""
    return ConfigDef((*_KEYS, *parse_table(table)))
