"""What every client knows.

The notation is that of moldau.config.table.
"""

from __future__ import annotations

__all__ = ["COMMON_TABLE"]

_TABLE = """\
client.dns.lookup                                 string
    use_all_dns_ips m {use_all_dns_ips,resolve_canonical_bootstrap_servers_only}
config.providers                                  list     []           l
metadata.max.age.ms                               long     300000       l    >=0
metadata.recovery.rebootstrap.trigger.ms          long     300000       l    >=0
metadata.recovery.strategy                        string   rebootstrap  l    ~{REBOOTSTRAP,NONE}
metric.reporters                                  list
    org.apache.kafka.common.metrics.JmxReporter l
metrics.num.samples                               int      2            l    >=1
metrics.recording.level                           string   INFO         l    {INFO,DEBUG,TRACE}
metrics.sample.window.ms                          long     30000        l    >=0
reconnect.backoff.max.ms                          long     1000         l    >=0
reconnect.backoff.ms                              long     50           l    >=0
request.timeout.ms                                int      30000        m    >=0
retry.backoff.max.ms                              long     1000         l    >=0
retry.backoff.ms                                  long     100          l    >=0
sasl.client.callback.handler.class                class    -            m
sasl.jaas.config                                  password -            m
sasl.kerberos.kinit.cmd                           string   /usr/bin/kinit l
sasl.kerberos.min.time.before.relogin             long     60000        l
sasl.kerberos.service.name                        string   -            m
sasl.kerberos.ticket.renew.jitter                 double   0.05         l
sasl.kerberos.ticket.renew.window.factor          double   0.8          l
sasl.login.callback.handler.class                 class    -            m
sasl.login.class                                  class    -            m
sasl.login.connect.timeout.ms                     int      -            l
sasl.login.read.timeout.ms                        int      -            l
sasl.login.refresh.buffer.seconds                 short    300          l    0..3600
sasl.login.refresh.min.period.seconds             short    60           l    0..900
sasl.login.refresh.window.factor                  double   0.8          l    0.5..1.0
sasl.login.refresh.window.jitter                  double   0.05         l    0.0..0.25
sasl.login.retry.backoff.max.ms                   long     10000        l
sasl.login.retry.backoff.ms                       long     100          l
sasl.mechanism                                    string   GSSAPI       m
sasl.oauthbearer.assertion.algorithm              string   RS256        m    ~{ES256,RS256}
sasl.oauthbearer.assertion.claim.aud              string   -            m
sasl.oauthbearer.assertion.claim.exp.seconds      int      300          l    0..86400
sasl.oauthbearer.assertion.claim.iss              string   -            m
sasl.oauthbearer.assertion.claim.jti.include      boolean  false        m
sasl.oauthbearer.assertion.claim.nbf.seconds      int      60           l    0..3600
sasl.oauthbearer.assertion.claim.sub              string   -            m
sasl.oauthbearer.assertion.file                   string   -            m
sasl.oauthbearer.assertion.private.key.file       string   -            m
sasl.oauthbearer.assertion.private.key.passphrase password -            m
sasl.oauthbearer.assertion.template.file          string   -            m
sasl.oauthbearer.client.credentials.client.id     string   -            m
sasl.oauthbearer.client.credentials.client.secret password -            m
sasl.oauthbearer.clock.skew.seconds               int      30           l
sasl.oauthbearer.expected.audience                list     []           h
sasl.oauthbearer.expected.issuer                  string   -            h
sasl.oauthbearer.header.urlencode                 boolean  false        l
sasl.oauthbearer.jwks.endpoint.refresh.ms         long     3600000      l
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long     10000        l
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms   long     100          l
sasl.oauthbearer.jwks.endpoint.url                string   -            m
sasl.oauthbearer.jwt.retriever.class              class
    org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever m
sasl.oauthbearer.jwt.validator.class              class
    org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator m
sasl.oauthbearer.scope                            string   -            m
sasl.oauthbearer.scope.claim.name                 string   scope        l
sasl.oauthbearer.sub.claim.name                   string   sub          l
sasl.oauthbearer.token.endpoint.url               string   -            m
security.protocol                                 string
    PLAINTEXT m ~{SASL_SSL,PLAINTEXT,SSL,SASL_PLAINTEXT}
security.providers                                string   -            l
send.buffer.bytes                                 int      131072       m    >=-1
socket.connection.setup.timeout.max.ms            long     30000        m
socket.connection.setup.timeout.ms                long     10000        m
ssl.cipher.suites                                 list     []           l
ssl.enabled.protocols                             list     TLSv1.2,TLSv1.3 m
ssl.endpoint.identification.algorithm             string   https        l
ssl.engine.factory.class                          class    -            l
ssl.key.password                                  password -            h
ssl.keymanager.algorithm                          string   SunX509      l
ssl.keystore.certificate.chain                    password -            h
ssl.keystore.key                                  password -            h
ssl.keystore.location                             string   -            h
ssl.keystore.password                             password -            h
ssl.keystore.type                                 string   JKS          m
ssl.protocol                                      string   TLSv1.3      m
ssl.provider                                      string   -            m
ssl.secure.random.implementation                  string   -            l
ssl.trustmanager.algorithm                        string   PKIX         l
ssl.truststore.certificates                       password -            h
ssl.truststore.location                           string   -            h
ssl.truststore.password                           password -            h
ssl.truststore.type                               string   JKS          m
"""

COMMON_TABLE = _TABLE
