# `make run` starts a broker, `make test` proves it. Both set up all they need in .venv: the first of
# them compiles, with a line for each step, and ./moldau runs the tools from there.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PORT   ?= 9092
DATA   ?= data
SEEDS  ?= 200
# Scenarios of one broker that also run on three, with coordinators moving in between: the first
# list whole in `make cluster-conformance`, of the second those that kill nodes also in CI.
MOVED := $(addprefix tests/conformance/test_,client_session.py exactly_once.py transactions.py \
           idempotence.py protocol_change.py group_subscribe.py retention.py compaction.py \
           dynamic_configs.py streams_group.py)
DISTURBED := $(addprefix tests/conformance/test_,groups_membership.py groups_offsets.py \
               share_group.py transactions_restarts.py)
# What only one node can show: a configuration of "this" broker, limits of a port, a second start.
ONE_NODE := (precedence or connections_per_address or made_anew or sees_the_same)
# Unit tests and simulations compute.
CORES ?= 2
# Conformance tests mostly wait for brokers and clients; a file's tests share theirs. More of them at
# once, beside Spark, are no faster on two cores and run into their time limits.
WORKERS ?= 3
# pytest for tests with many processes at once: CI runs again, alone, what failed among them.
CROWD := $(BIN)/python tests/support/crowd.py

# Set in container images to keep their layers small. Without compiled files every start of a broker
# takes twice as long, and tests start hundreds of them.
unexport PYTHONDONTWRITEBYTECODE

# What the compiled modules and the installed package depend on.
TYPES := $(shell find src -name '*.pxd')
BUILD_INPUTS := pyproject.toml setup.py $(TYPES) $(TYPES:.pxd=.py)

.PHONY: help install install-spark run test test-long test-long-list check unit conformance spark demo chaos bench sim tools kafka clean

help:            ## list the targets
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

install: $(VENV)/.installed   ## set up .venv, for ./moldau; compiles once

install-spark: $(VENV)/.installed-spark   ## add Apache Spark to .venv, for pipelines

run: $(VENV)/.installed   ## start a broker on 127.0.0.1:9092 (PORT=, DATA=)
	@exec $(BIN)/moldau start --port $(PORT) --data $(DATA)

.PHONY: up
up: $(VENV)/.installed-platform   ## run a broker and all services: registry, REST, Connect, SQL, Control Center
	@exec $(BIN)/moldau up

# Runs the stages one after the other, those with a + at the same time, and ends with their times and
# the slowest tests. Conformance and Spark tests wait a good deal for processes.
WHOLE_RUN = +@$(PYTHON) tests/support/whole_run.py $(MAKE)

test:            ## what CI runs: check, unit, conformance, Spark tests, a short simulation
	$(WHOLE_RUN) $(VENV)/.installed-test check+sim-short others unit \
	  conformance-one+conformance-three+spark-short

test-long:       ## what `make test` leaves out: tests marked long, all scenarios on three nodes, simulations
	$(WHOLE_RUN) marked-long properties spark-long cluster-conformance sim

test-long-list: $(VENV)/.installed-test   ## the tests marked long, each with the reason
	@$(BIN)/pytest tests -q --list-long --disable-warnings -m long

check: $(VENV)/.installed-test   ## ruff, strict mypy, import contracts
	$(BIN)/ruff check src tests bench tools examples
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

unit: $(VENV)/.installed-test   ## tests without foreign clients
	$(BIN)/pytest tests/unit tests/scripts tests/simulation -m "not long" -n $(CORES) --dist worksteal

conformance: conformance-one conformance-three   ## tests with foreign clients and Apache Kafka

# What these tests need beside Python's packages. One stage fetches it: targets that run at the same
# time would do so twice.
.PHONY: others conformance-one conformance-three
others: tools kafka elasticsearch sql-clients axe

conformance-one: $(VENV)/.installed-test | others
	$(CROWD) tests/conformance -m "not long" -n $(WORKERS) --dist loadfile

# Three nodes of which one is killed: these mostly wait, beside the others.
conformance-three: $(VENV)/.installed-test | others
	$(CROWD) --cluster $(DISTURBED) -m "not long" -n 2 --dist loadfile -k killed

.PHONY: spark-short
spark-short: $(VENV)/.installed-test | tools kafka
	$(CROWD) tests/spark -m "not long"

# CI tries the same few examples each time.
.PHONY: properties
properties: $(VENV)/.installed-test   ## properties with all their examples, new ones each time
	CI= $(BIN)/pytest tests/unit -m "hypothesis and not long" -n $(CORES) --dist worksteal

.PHONY: marked-long spark-long
marked-long: $(VENV)/.installed-test | tools kafka
	$(CROWD) tests --ignore=tests/spark -m long -n $(WORKERS) --dist loadfile

spark-long: $(VENV)/.installed-test | tools kafka
	$(CROWD) tests/spark -m long

# One Spark server and one broker serve all of these, so they run in one process.
spark: $(VENV)/.installed-test | tools kafka   ## tests of pipelines on Apache Spark
	$(BIN)/pytest tests/spark

demo: $(VENV)/.installed-spark   ## the orders example with a live view, for a minute (DEMO="--rate 100")
	@cd examples/orders && PYTHONPATH=src exec $(CURDIR)/$(BIN)/python -m orders.demo $(DEMO)

chaos: $(VENV)/.installed-test   ## kill driver, executor, broker, control loop under every sink (CHAOS="--rounds 50", long)
	PYTHONPATH=tests $(BIN)/python -m spark.chaos $(CHAOS)

.PHONY: pipelines-hour
MINUTES ?= 60
pipelines-hour: $(VENV)/.installed-test   ## ten pipelines left alone for an hour: does anything grow? (MINUTES=60)
	$(BIN)/python -m bench.pipelines_hour --minutes $(MINUTES)

.PHONY: kills
KILLS ?= 1000
kills: $(VENV)/.installed-test   ## SIGKILLs of a broker under a producer and a group (KILLS=1000, long)
	PYTHONPATH=tests $(BIN)/python -m kills --count $(KILLS) $(if $(SEED),--seed $(SEED))

.PHONY: connect-kills
CONNECT_KILLS ?= 50
connect-kills: $(VENV)/.installed-test parts   ## SIGKILLs of workers and targets during flows of Connect (CONNECT_KILLS=50 each, ON_SPARK=1, long)
	PYTHONPATH=tests $(BIN)/python -m support.connect_kills --count $(CONNECT_KILLS) $(if $(SEED),--seed $(SEED)) $(if $(ON_SPARK),--on-spark)

.PHONY: streams-kills
STREAMS_KILLS ?= 50
streams-kills: $(VENV)/.installed-test   ## SIGKILLs of instances during a word count and a join (STREAMS_KILLS=50, NODES=1, ON_SPARK=1, long)
	PYTHONPATH=tests $(BIN)/python -m support.streams_kills --count $(STREAMS_KILLS) $(if $(SEED),--seed $(SEED)) $(if $(NODES),--nodes) $(if $(ON_SPARK),--on-spark)

.PHONY: mirror-kills
MIRROR_KILLS ?= 50
mirror-kills: $(VENV)/.installed-test   ## SIGKILLs of a mirror and its clusters while groups move (MIRROR_KILLS=50, long)
	PYTHONPATH=tests $(BIN)/python -m support.mirror_kills --count $(MIRROR_KILLS) $(if $(SEED),--seed $(SEED))

.PHONY: examples
examples: $(VENV)/.installed-test | tools elasticsearch   ## run all examples, use cases and exercises (minutes)
	$(BIN)/pytest tests/conformance/test_examples_clients.py tests/conformance/test_learn.py \
	  tests/conformance/test_examples_use_cases.py tests/conformance/test_testing_examples.py \
	  tests/conformance/test_examples_orders.py

.PHONY: site
site: $(VENV)/.installed-test   ## build the documentation site in build/site
	$(BIN)/python tools/build_site.py

.PHONY: runbook
runbook: $(VENV)/.installed-test | tools   ## make each trouble of docs/runbook.md; Prometheus names it
	$(BIN)/pytest tests/conformance/test_runbook.py

.PHONY: sql-rest
sql-rest: $(VENV)/.installed-test   ## all of ksqlDB's REST cases against a SQL server (five minutes)
	MOLDAU_SQL_REST=all $(BIN)/pytest tests/conformance/sql/test_rest_cases.py -q

.PHONY: sql-fuzz
STATEMENTS ?= 20000
sql-fuzz: $(VENV)/.installed-test   ## random statements against a SQL server (STATEMENTS=20000, SEED=, long)
	PYTHONPATH=tests $(BIN)/python -m support.ksql.server_fuzz --count $(STATEMENTS) $(if $(SEED),--seed $(SEED))

.PHONY: fuzz
FRAMES ?= 1000000
fuzz: $(VENV)/.installed-test   ## malformed frames against a broker (FRAMES=1000000, SEED=, long)
	PYTHONPATH=tests $(BIN)/python -m fuzz --frames $(FRAMES) $(if $(SEED),--seed $(SEED))

.PHONY: http-fuzz
http-fuzz: $(VENV)/.installed-test   ## generated requests against registry and REST Proxy, 25 per operation (long)
	$(BIN)/pytest -q -m long -k generated_request \
	  tests/conformance/registry/test_hostile.py tests/conformance/rest/test_openapi.py

.PHONY: cluster-conformance
cluster-conformance: $(VENV)/.installed-test tools   ## every scenario on three nodes (long)
	$(BIN)/pytest --cluster $(MOVED) $(DISTURBED) -n $(WORKERS) --dist loadfile \
	  -k "not $(ONE_NODE)"

bench: $(VENV)/.installed-test   ## benchmarks: a table, and JSON under bench/results
	$(BIN)/python -m bench $(BENCH)

# Quix Streams and Faust in a place of their own; what cannot be installed is left out of the run.
.PHONY: bench-streams bench-streams-others
bench-streams: $(VENV)/.installed-test   ## streams beside other libraries in one run (BENCH="--quick")
	$(BIN)/python -m bench.streams_others $(BENCH)

bench-streams-others: .cache/streams-others/.made   ## install Quix Streams and Faust for bench-streams
.cache/streams-others/.made:
	@$(PYTHON) -m venv $(@D)
	@for each in quixstreams faust-streaming; do $(@D)/bin/pip install -q $$each || true; done
	@touch $@

sim: $(VENV)/.installed-test   ## long seeded simulations (SEEDS=n)
	$(BIN)/python -m moldau.sim --seeds $(SEEDS)

.PHONY: sim-short
sim-short: $(VENV)/.installed-test
	$(BIN)/python -m moldau.sim --seeds 25 --first-seed 1

# Debian's packages; where they cannot be installed the tests that need them say so and skip.
tools:
	@wanted=; command -v kcat >/dev/null || wanted=kcat; \
	command -v mosquitto_pub >/dev/null || wanted="$$wanted mosquitto-clients"; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || wanted="$$wanted postgresql"; \
	[ -x /usr/sbin/mariadbd ] || wanted="$$wanted mariadb-server"; \
	command -v redis-server >/dev/null || wanted="$$wanted redis-server"; \
	command -v chromium >/dev/null || wanted="$$wanted chromium"; \
	[ -x /usr/sbin/mosquitto ] || wanted="$$wanted mosquitto"; \
	[ -x /usr/sbin/rsyslogd ] || wanted="$$wanted rsyslog"; \
	[ -x /usr/sbin/krb5kdc ] && command -v krb5-config >/dev/null \
	  || wanted="$$wanted krb5-kdc krb5-admin-server krb5-user libkrb5-dev"; \
	[ -x /usr/sbin/slapd ] || wanted="$$wanted slapd"; \
	command -v prometheus >/dev/null || wanted="$$wanted prometheus"; \
	[ -x /usr/sbin/haproxy ] || wanted="$$wanted haproxy"; \
	[ -z "$$wanted" ] || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	  apt-get install -y -qq $$wanted >/dev/null; } || true
	@# Compiled against the Kerberos of the machine; without it the tests of GSSAPI skip.
	@[ ! -x $(BIN)/python ] || $(BIN)/python -c 'import gssapi' 2>/dev/null \
	  || $(BIN)/pip install -q gssapi >/dev/null 2>&1 || true

# Servers that connectors are tested against and that Debian does not have; without them tests skip.
PARTS := $(CURDIR)/.cache/parts
.PHONY: parts connectors elasticsearch
JAVA_PARTS := $(foreach each,cassandra hdfs neo4j,$(PARTS)/$(each)/.copied)
parts: elasticsearch $(JAVA_PARTS) $(PARTS)/bin/minio $(PARTS)/bin/ferretdb $(PARTS)/bin/influxd   ## fetch and build servers for connectors (minutes)
	@# Not in `make tools`: Debian starts an SSH server that is installed.
	@[ -x /usr/sbin/sshd ] || echo "no sshd here: apt-get install openssh-server adds the test of SFTP"
elasticsearch: $(PARTS)/elasticsearch-6.8.23.zip
$(PARTS)/elasticsearch-6.8.23.zip:
	@mkdir -p $(PARTS)
	@command -v mvn >/dev/null && mvn -q -B dependency:copy -DoutputDirectory=$(PARTS) \
	  -Dartifact=org.elasticsearch.distribution.integ-test-zip:elasticsearch:6.8.23:zip || true
$(PARTS)/%/.copied: tests/java/parts/%.xml
	@mkdir -p $(@D)
	@! command -v mvn >/dev/null || { mvn -q -B -f $< dependency:copy-dependencies \
	  -DincludeScope=runtime -DoutputDirectory=$(@D) && touch $@; }
$(PARTS)/bin/minio:
	@! command -v go >/dev/null || GOBIN=$(PARTS)/bin go install github.com/minio/minio@latest
$(PARTS)/bin/influxd:
	@! command -v go >/dev/null || GOBIN=$(PARTS)/bin go install github.com/influxdata/influxdb/cmd/influxd@v1.8.10
$(PARTS)/bin/ferretdb: tests/go/ferretdb/main.go
	@mkdir -p $(PARTS)/ferretdb && cp $< $(PARTS)/ferretdb
	@! command -v go >/dev/null || { cd $(PARTS)/ferretdb && { [ -f go.mod ] || go mod init ferret; } \
	  && GOFLAGS=-mod=mod go get github.com/FerretDB/FerretDB@v1.24.0 \
	  && GOFLAGS=-mod=mod go build -o $@ .; }

connectors: $(VENV)/.installed-test tools parts   ## tests of all connectors with the servers of `make parts`
	$(BIN)/pytest tests/conformance/connectors -n 2 --dist loadfile

# Clients of the SQL server: npm's, and PyPI's with the old packages that it needs, in a place of its
# own. Without Node or the registries their tests skip.
SQL_CLIENTS := $(CURDIR)/.cache/sql-clients
.PHONY: sql-clients
sql-clients: $(SQL_CLIENTS)/node_modules $(SQL_CLIENTS)/python/bin/python
$(SQL_CLIENTS)/node_modules: tests/node/package.json
	@mkdir -p $(SQL_CLIENTS) && cp $< $(SQL_CLIENTS)
	@! command -v npm >/dev/null || { cd $(SQL_CLIENTS) && npm install --silent --no-audit --no-fund \
	  && touch node_modules; } || true
$(SQL_CLIENTS)/python/bin/python:
	@mkdir -p $(SQL_CLIENTS) && $(PYTHON) -m venv $(SQL_CLIENTS)/venv \
	  && $(SQL_CLIENTS)/venv/bin/pip install -q 'setuptools<58' wheel \
	  && $(SQL_CLIENTS)/venv/bin/pip install -q --no-build-isolation ksql==0.10.2 \
	  && ln -sfn venv $(SQL_CLIENTS)/python || true
# Checks pages for people who use a keyboard or a screen reader; without npm that test skips.
.PHONY: axe
axe: .cache/axe-core/axe.min.js
.cache/axe-core/axe.min.js:
	@mkdir -p $(@D)
	@! command -v npm >/dev/null || { cd $(@D) && npm pack --silent axe-core@4.14.0 >/dev/null \
	  && tar -xzf axe-core-4.14.0.tgz --strip-components=1 package/axe.min.js; } || true

# Apache Kafka by Maven coordinate (tests/java/pom.xml); without Java or Maven its tests skip.
kafka: .cache/kafka/.archived
.cache/kafka/.archived: .cache/kafka/.copied | $(VENV)/.installed-test
	@if [ -f .cache/kafka/.copied ]; then \
	  PYTHONPATH=tests $(BIN)/python -m support.class_archives && touch $@; fi
.cache/kafka/.copied: tests/java/pom.xml
	@mkdir -p .cache/kafka
	@if command -v mvn >/dev/null && command -v java >/dev/null; then \
	  mvn -q -B -f tests/java/pom.xml dependency:copy-dependencies \
	    -DoutputDirectory=$(CURDIR)/.cache/kafka && touch $@; \
	else echo "no Java or Maven here: tests against Apache Kafka will be skipped"; fi

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The only rule that compiles; those below it add packages.
$(VENV)/.installed: $(BUILD_INPUTS) | $(BIN)/python
	@$(BIN)/python tools/set_up.py
	@touch $@

$(VENV)/.installed-spark: $(VENV)/.installed
	@$(BIN)/python tools/set_up.py spark
	@touch $@

$(VENV)/.installed-platform: $(VENV)/.installed
	@$(BIN)/python tools/set_up.py platform
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@$(BIN)/python tools/set_up.py test
	@touch $@ $(VENV)/.installed-spark $(VENV)/.installed-platform

clean:           ## remove what was built (not the data folder)
	rm -rf $(VENV) build .cache *.egg-info src/*.egg-info
	rm -f $(TYPES:.pxd=.c)
	find src -name '*.so' -delete
