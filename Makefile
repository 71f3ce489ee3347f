# Each target sets up what it needs, once: a virtual environment in .venv with the compiled core.

VENV   := .venv
PYTHON := $(VENV)/bin/python
CORE   := pyproject.toml setup.py $(shell find ripple -name '*.pyx' -o -name '*.pxd' -o -name '*.h*')

# Modules are compiled to bytecode when they are first imported, and most never are.
export PIP_NO_COMPILE := 1

.PHONY: help install install-hooks demo demo-kafka dashboard screenshots site test test-services test-spark-versions test-peers test-deploy test-containers lint \
	bench bench-history gate wide fuzz sim scenarios missing kill chaos soak corruption protos lock sbom check sanitize clean

help:  ## this list
	@sed -nE 's/^([a-z-]+):[^#]*  ## (.*)/  \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

# From the clone, without the third of the compiled modules that the demo does not import.
demo: $(VENV)/.demo  ## VWAPs of 100,000 generated trades, after compiling what they need
	$(PYTHON) -c 'from ripple.cli.start import vwap_demo; vwap_demo()' --synthetic 100000 --final

install: $(VENV)/.ripple  ## Ripple in .venv, with its commands: EXTRAS=cluster,query
	@$(if $(EXTRAS),$(PIP) --no-build-isolation --editable '.[$(EXTRAS)]')

# A broker of Kafka and an object store from the package registries (Java and mvn are needed), three
# workers, and what they make of a market, on the screen. Ctrl+C ends everything.
demo-kafka: $(VENV)/.dev  ## a cluster of three workers with Kafka and an object store (Java, Maven)
	@$(PYTHON) -m tests.services.demo

# What the dashboard's page takes from others, from npm's registry; a wheel has it already.
dashboard: $(VENV)/.ripple  ## fetch the third-party files of the dashboard's page from npm
	$(PYTHON) -m ripple.client.dashboard.assets

# The pictures in docs/images: a cluster, a browser (Debian's chromium), light and dark.
screenshots: $(VENV)/.dev dashboard  ## the pictures in docs/images (chromium)
	$(PYTHON) -m tests.client.dashboard.screenshots

# A process for each processor and one more, since many tests wait for processes of their own; what is
# imported is compiled once, and not by each of them. A single test is debugged with
# `.venv/bin/python -m pytest PATH`.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/.dev  ## the tests, on all processors
	$(PYTHON) -m pytest --dist worksteal -n $$($(PYTHON) -c 'import os; print(os.cpu_count() + 1)')

# What takes a minute, starts processes that take seconds, or needs something outside: the wheel by
# itself, built and installed; processes by the dozen, frozen and killed; Spark, which needs Java; brokers
# and object stores, which the tests fetch with mvn and pip into ~/.cache/ripple-services, or where
# RIPPLE_SERVICES_CACHE says. What of them cannot be had is skipped by name, and fails with CI=true. One
# more at a time than there are processors: they wait for what they started more than they compute. The
# files with such tests alone are read, those that take minutes first: a file is one process's.
LONGEST := $(addsuffix .py,$(addprefix tests/,$(addprefix services/test_,\
	spark_versions spark_run package bench kafka_chaos chaos s3_runs) client/flight/barrage/test_judges \
	$(addprefix services/test_,spark_kills spark_s3 idle spark_moves events spark spark_watch)))
test-services: $(VENV)/.spark  ## tests with many processes, brokers, stores, Spark (Java, Maven)
	$(PYTHON) -m pytest -m services --dist loadfile --no-loadscope-reorder \
		-n $$($(PYTHON) -c 'import os; print(os.cpu_count() + 1)') $(LONGEST) \
		$(filter-out $(LONGEST),$(sort $(shell grep -rlE 'mark\.services|pytestmark' tests --include='test_*.py')))

# Each part of Ripple on Spark once, with each PySpark, fetched into the cache of test-services; the
# oldest is among test-services, which have the newest.
SPARK_VERSIONS := 4.0.5 4.1.4 4.2.1 4.3.0
test-spark-versions: $(VENV)/.spark  ## each part of Ripple on Spark, with each PySpark (Java)
	RIPPLE_SPARK_VERSIONS="$(SPARK_VERSIONS)" $(PYTHON) -m pytest -n 0 -m services tests/services/test_spark_versions.py

# The programs of docs/coming-from in all libraries, fetched into the cache of test-services: 1.2 GB.
test-peers: $(VENV)/.dev  ## the pages for users of other libraries, with all of these (Java)
	RIPPLE_PEERS=all $(PYTHON) -m pytest -n 0 -m services tests/services/test_coming_from.py

# What is shipped: the Dockerfile, docker-compose.yml and deploy/ before the programs that read them
# (fetched with pip, go and apt-get), and the stack of docker-compose.yml started, as processes.
test-deploy: $(VENV)/.dev  ## tests of the Dockerfile, Compose, Kubernetes and Helm files
	$(PYTHON) -m pytest -m deploy

# By root: the image, built and run by an engine of Debian's packages, and the manifests before a real
# API server of Kubernetes, which Go builds first: ten minutes of a processor and 2 GB.
test-containers: $(VENV)/.dev  ## the image, and Kubernetes' API server (root)
	$(PYTHON) -m pytest -m containers

# docs/ as a site, in build/site/site; Zensical is fetched into the cache of test-services.
site: $(VENV)/.dev  ## the documentation as a site, in build/site/site
	@$(PYTHON) -m tests.deploy.site build/site

# codespell has a dictionary of our own, .ci/retired.txt: retired terms, and the terms to use.
lint: $(VENV)/.dev  ## ruff, mypy and codespell
	git ls-files -z | xargs -0 $(PYTHON) -m codespell_lib
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy

# git runs .ci/pre-commit from now on: ruff, codespell and mypy on what is staged.
install-hooks: $(VENV)/.dev  ## a quick check before each commit
	ln -sf "$(CURDIR)/.ci/pre-commit" "$$(git rev-parse --git-path hooks)/pre-commit"

bench: $(VENV)/.bench  ## all benchmarks
	$(PYTHON) -m bench

# AGAINST=COMMIT, by default the last tag or the commit before; LIMIT=1.2 for a narrower gate; ONLY="csv json".
# PLANTED=1.08 gives this tree so many times the events: the gate has to find that.
gate: $(VENV)/.bench  ## compare workloads with an older commit: AGAINST=COMMIT LIMIT=1.2
	$(PYTHON) -m bench --against $(or $(AGAINST),$(shell git describe --tags --abbrev=0 2>/dev/null || echo HEAD~1)) \
		$(if $(LIMIT),--limit $(LIMIT)) $(if $(PLANTED),--planted $(PLANTED)) $(ONLY)

# One file of figures a release, on a quiet machine: committed, so that releases can be compared. It is
# written after each benchmark, and a second run measures the rest; ONLY="log memory" measures these.
bench-history: $(VENV)/.bench  ## figures of this version, in bench/history: ONLY="log memory"
	$(PYTHON) -m bench --resume --json bench/history/$$($(PYTHON) -c 'import ripple; print(ripple.__version__)').json $(ONLY)

# The tests with many times as many random examples and seeds, others each time: EXAMPLES=20 takes an
# hour and more.
wide: $(VENV)/.dev  ## the tests with many times the random examples: EXAMPLES=20
	RIPPLE_EXAMPLES=$(or $(EXAMPLES),20) $(PYTHON) -m pytest --dist worksteal -n $$(nproc)

# SECONDS=3600 for a night's start; a failure prints what repeats it.
fuzz: $(VENV)/.dev  ## fuzz the wire and the compiled loops: SECONDS=60
	$(PYTHON) -m tests.exchange.wire.fuzz_link --seconds $(or $(SECONDS),60)
	$(PYTHON) -m tests.engine.kernels.fuzz_batches --seconds $(or $(SECONDS),60)

# The compiled modules with AddressSanitizer and UndefinedBehaviorSanitizer, in a folder of their own;
# then the tests of the batch path and of the graph with them, and its fuzzing: minutes, most of them to
# compile. What a sanitizer reports goes past Python, so nothing may be in between.
SANITIZED := build/sanitized
SANITIZERS := address,undefined
SANITIZED_PYTHON = cd $(SANITIZED) && PYTHONPATH=. PYTHONMALLOC=malloc \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$(for name in asan ubsan stdc++; do $(CC) -print-file-name=lib$$name.so; done | xargs)" \
	$(abspath $(PYTHON))

sanitize: $(VENV)/.dev  ## the compiled modules under AddressSanitizer and UBSan
	rm -rf $(SANITIZED) && mkdir -p $(SANITIZED)
	git ls-files -z ripple tests bench coordinator worker examples docs pyproject.toml setup.py README.md \
		| xargs -0 cp --parents --target-directory $(SANITIZED)
	cd $(SANITIZED) && flags="-fsanitize=$(SANITIZERS) -fno-omit-frame-pointer -fno-sanitize-recover=undefined" && \
		CFLAGS="$$flags" CXXFLAGS="$$flags" LDFLAGS="-fsanitize=$(SANITIZERS)" $(abspath $(PYTHON)) setup.py -q build_ext --inplace
	$(SANITIZED_PYTHON) -m pytest -q -p no:cacheprovider --capture=sys \
		tests/engine/kernels tests/model/window tests/engine/graph tests/connectors/test_plain_lines.py
	$(SANITIZED_PYTHON) -m tests.engine.kernels.fuzz_batches --seconds $(or $(SECONDS),60)

# SEEDS=1000000 for a night; a failure prints its seed, its faults and the command to repeat it. A seed
# of a cluster takes a second or two of a processor, any other a tenth: SCENARIOS=... for some of them.
SCENARIOS := tests.task.scenarios:any_shape tests.world.scenarios:temp_and_rename \
	tests.world.scenarios:counting_workers tests.world.scenarios:one_winner \
	tests.control.assignment.scenarios:proposers tests.coordinator.scenarios:two_coordinators \
	tests.worker.scenarios:members_come_and_go tests.worker.trials:windows tests.worker.trials:totals \
	tests.worker.trials:rows tests.worker.trials:window_totals tests.worker.trials:chain \
	tests.worker.trials:matched_at_once tests.worker.trials:moved_at_once \
	tests.worker.trials:quotes_moved tests.worker.trials:both_moved \
	tests.worker.trials:moved_at_broker tests.worker.trials:events_moved tests.worker.trials:apart \
	tests.worker.trials:apart_at_broker tests.worker.trials:both_apart \
	tests.worker.trials:by_watermark tests.worker.trials:endings tests.worker.trials:idle \
	tests.worker.trials:idle_sources tests.worker.trials:idle_stages tests.worker.trials:idle_totals \
	tests.worker.trials:sources tests.worker.trials:one_partition tests.worker.trials:source_stages \
	tests.worker.trials:joined tests.worker.trials:matched tests.worker.trials:streams \
	tests.worker.trials:branched tests.worker.trials:new_branch \
	tests.worker.trials:new_branch_of_stages tests.worker.trials:tree \
	tests.worker.trials:asked tests.worker.trials:asked_idle tests.worker.trials:asked_stages \
	tests.task.repartition.test_clusters:events tests.task.repartition.test_clusters:divided \
	tests.task.repartition.test_clusters:idle_events tests.world.test_sim_cluster:telling \
	tests.world.test_sim_control:answers_in_the_end \
	tests.world.test_sim_broker:counting_through_a_broker

# Spans of the trials are a few nanoseconds, which Ripple warns of.
sim: $(VENV)/.dev  ## simulated crashes and faults: SEEDS=10000 FIRST=0 SCENARIOS=...
	for scenario in $(SCENARIOS); do \
		$(PYTHON) -W ignore::UserWarning -m ripple.testing $$scenario --seed $(or $(FIRST),0) \
			--seeds $(or $(SEEDS),10000) --jobs $$(nproc) || exit 1; \
	done

# As JSON: a nightly job for each.
scenarios:  ## the scenarios of make sim
	@python3 -c 'import json, sys; print(json.dumps(sys.argv[1:]))' $(SCENARIOS)

# Each safeguard of clusters switched off, until a seed finds that out: SEEDS=1000 of each pipeline at
# most. SAFEGUARDS=fence for one of them.
missing: $(VENV)/.dev  ## switch off each safeguard until a seed notices: SEEDS=1000
	$(PYTHON) -W ignore::UserWarning -m tests.worker.missing --seeds $(or $(SEEDS),1000) $(SAFEGUARDS)

# A million trades and fifty SIGKILLs: minutes.
kill: $(VENV)/.dev  ## a million trades and fifty SIGKILLs: KILLS=50
	$(PYTHON) -m tests.task.kill_nine --trades 1000000 --kills $(or $(KILLS),50)

# A cluster of real processes and a hundred disturbances: minutes. SEED=7 for others. The last one
# reads and writes topics, and has the broker of Kafka and the object store among its victims: first
# with one broker, then with three, where others lead once one is gone. After each of them owners do
# nothing but commit while brokers are killed.
chaos: $(VENV)/.dev  ## a real cluster in a hundred disturbances: EVENTS=100 SEED=0
	for pipeline in windows sessions totals; do \
		$(PYTHON) -m tests.cluster.chaos --pipeline $$pipeline --events $(or $(EVENTS),100) \
			--seed $(or $(SEED),0) || exit 1; \
	done
	for brokers in 1 3; do \
		$(PYTHON) -m tests.services.kafka_chaos --events $(or $(EVENTS),100) \
			--seed $(or $(SEED),0) --brokers $$brokers || exit 1; \
		$(PYTHON) -m tests.services.kafka_owners --seed $(or $(SEED),0) --brokers $$brokers || exit 1; \
	done

# What grows in a cluster that is left alone with its work. Writes soak.csv and soak.svg.
soak: $(VENV)/.dev  ## a cluster under steady load, nothing may grow: HOURS=2
	$(PYTHON) -m tests.cluster.soak --hours $(or $(HOURS),2)

# Every bit flip and every truncation of a checkpoint of 64 KiB: minutes.
corruption: $(VENV)/.dev  ## each bit flip and truncation of a checkpoint
	$(PYTHON) -m tests.storage.checkpoint.corruption

# The messages of gRPC, from proto/ to ripple/: they are committed, and a test compares them.
protos: $(VENV)/.dev  ## generate the messages of gRPC from proto/
	$(PYTHON) -m tests.control.rpc.generate

# What the image installs: the newest versions that pyproject.toml allows, with their hashes, and
# as a bill of materials (CycloneDX) in build/sbom.json.
IMAGE_EXTRAS := cluster kafka avro msgpack s3 barrage dashboard query tracing
LOCK := deploy/docker/requirements.lock

lock: $(PYTHON)  ## the versions and hashes that the image installs
	$(PIP) uv
	$(PYTHON) deploy/docker/needed.py $(IMAGE_EXTRAS) | $(PYTHON) -m uv pip compile --quiet --upgrade --universal \
		--python-version 3.11 --generate-hashes --no-header --no-annotate --output-file $(LOCK) -

sbom: $(PYTHON)  ## the bill of materials of the image, in build/sbom.json
	@mkdir -p build
	$(PIP) cyclonedx-bom
	$(PYTHON) -m cyclonedx_py requirements $(LOCK) --pyproject pyproject.toml --output-file build/sbom.json

check: lint test test-services test-deploy  ## lint and all tests: the gate of a change

clean:  ## remove everything that was built
	rm -rf $(VENV) build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache bench/results
	find ripple -name '*.so' -delete -o -name '*.c' -delete -o -name '*.cpp' -delete
	find . -name __pycache__ -type d -exec rm -rf {} +

$(PYTHON):
	python3 -m venv $(VENV)

# Requirements of a table of pyproject.toml: TABLE KEY. What Ripple needs is unpacked while it is compiled,
# but after setuptools has been replaced: a second pip would warn of what the first has half removed.
REQUIRED = $(PYTHON) -c 'import sys, tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))[sys.argv[1]][sys.argv[2]])'
PIP := $(PYTHON) -m pip install --quiet --disable-pip-version-check

$(VENV)/.demo: $(CORE) | $(PYTHON)
	$(PIP) $$($(REQUIRED) build-system requires)
	$(PIP) $$($(REQUIRED) project dependencies) & needed=$$!; \
		CFLAGS="$(CFLAGS) -w" $(PYTHON) -W ignore setup.py -q build_ext --inplace --demo; built=$$?; \
		wait $$needed && exit $$built
	@touch $@

# What the demo has compiled stays: in an environment of its own pip would have Cython write all again.
$(VENV)/.ripple: $(VENV)/.demo
	$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(PIP) --no-build-isolation --editable '.[dev]'
	@touch $@ $(VENV)/.ripple

$(VENV)/.spark: $(VENV)/.dev
	$(PIP) --no-build-isolation --editable '.[spark]'
	@touch $@

$(VENV)/.bench: $(VENV)/.demo
	$(PIP) --no-build-isolation --editable '.[bench]'
	@touch $@ $(VENV)/.dev $(VENV)/.ripple
