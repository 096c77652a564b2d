# Leafcast: everything a developer or a visitor runs. `make` alone lists it.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
SHELL := /bin/sh

VENV  := .venv
BIN   := $(VENV)/bin
SEEDS ?= 500
# What `make long` simulates: size and seeds, about a minute of one core for each.
LONG_SEEDS := tiny:1200 small:400 rolling:300 wide:40 deep:25
SECONDS ?= 20
CHART_PAGE := deploy/helm/leafcast/README.md
KEYRING := /usr/share/keyrings/debian-archive-keyring.gpg
PIP   := $(BIN)/python -m pip --disable-pip-version-check

# A Python that is new enough and can make virtual environments; PYTHON=... is tried first.
PYTHONS := $(PYTHON) python3.13 python3.12 python3.11 python3

# Each prints a table and says which file it writes; with RECORD=1 benchmarks/results/<name>.json.
BENCHES := cost latency fanout durable forwarding restart reduction snapshot audience footprint scale \
  kube_latency kube_apply kube_cost kube_restart customization kube_customization collecting rows \
  flipping child_flood singletons plan removal rollout commands kubefleet tls keys sealing enrolment \
  reconnect claims change observed backup trios trio_region upgrading page interpreters soak

# What `make check` runs of the suite, with fewer examples: everything that needs no server.
FAST = -m 'not nats and not slow and not docker and not long' $(FAST_TESTS)
FAST_TESTS := $(wildcard tests/unit tests/property tests/contract tests/conformance)

.PHONY: help setup demo test long check coverage simulate fuzz bench kube docs pictures site dist deb bundle

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
	  while IFS='|' read -r target what; do printf '%-16s %s\n' "$$target" "$$what"; done

setup: $(VENV)/.installed-dev ## make .venv with Leafcast and the tools of its developers

demo: $(VENV)/.installed ## deliver a small shop through a real tree, ARGS='--regions 3 ...'
	@$(BIN)/leafcast demo $(ARGS)

test: $(VENV)/.installed-dev ## run the test suite but for `make long` (25 min), ARGS='-n0 -k mailbox ...'
	@$(call begins,25 minutes)
	$(BIN)/python -m tests.once_more -n 3 -m 'not long' $(ARGS)
	@$(ends)

long: $(VENV)/.installed-dev ## what takes longest: planted faults, broken trees, many seeds (35 min)
	@$(call begins,35 minutes)
	$(call beside,$(IN_SPARE_TIME) $(LONG_SEEDS),$(BIN)/python -m tests.once_more -n 3 -m long $(ARGS))
	@$(ends)

check: $(VENV)/.installed-dev ## format, lint, types, import contracts, tidiness, fast tests (3 min)
	@$(call begins,3 minutes)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(call beside,$(BIN)/mypy,$(BIN)/python -m pytest -q -n 2 --hypothesis-profile brief $(FAST))
	@$(ends)

coverage: $(VENV)/.installed-dev ## which lines the fast tests of `make check` run, by file (5 min)
	@$(call begins,5 minutes)
	$(BIN)/python -m pytest -q -n 2 --hypothesis-profile few $(COVER) $(FAST)
	@$(ends)

simulate: $(VENV)/.installed-dev ## run the seeded simulation and kill its mutants, SEEDS=500, SIZE=tiny, SEED=small:17
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) $(if $(SIZE),--size $(SIZE)) $(if $(SEED),--seed $(SEED))

fuzz: $(VENV)/.installed-dev ## throw bytes at every decoder, SECONDS=20 for each, ARGS='envelope --seed 7'
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) $(ARGS)

bench: $(VENV)/.installed-dev ## measure everything beside its raw limit, BENCH=cost for one figure
	@for name in $(or $(BENCH),$(BENCHES)); do $(BIN)/python -m benchmarks.$$name || exit 1; done

kube: $(VENV)/.installed-dev ## find kube-apiserver, etcd and the like, or build them once (25 min), and say where
	@$(BIN)/python -m tests.kube.build

docs: $(VENV)/.installed-dev ## write docs/commands.md, manual pages, tables of metrics and the chart's page anew
	$(BIN)/python -m tests.commands_page > docs/commands.md.new && mv docs/commands.md.new docs/commands.md
	$(BIN)/python -m tests.manual_pages
	$(BIN)/python -m tests.metrics_page
	$(BIN)/python -m tests.chart_page > $(CHART_PAGE).new && mv $(CHART_PAGE).new $(CHART_PAGE)

pictures: $(VENV)/.installed-dev ## take the pictures of the documents anew, of real trees (2 min)
	LEAFCAST_PICTURES=1 $(BIN)/python -m pytest -q -n0 tests/unit/test_page_browser.py::$(OF_PAGE) \
	  'tests/e2e/test_documents.py::$(OF_DOCUMENTS)[docs/quickstart.md]'

site: $(VENV)/.installed-dev ## build the documentation site, build/site/html, read without a network (10 s)
	$(BIN)/python -m tests.site_pages build/site
	PYTHONPATH=. $(BIN)/zensical build --strict --clean --config-file build/site/mkdocs.yml

dist: $(VENV)/.installed-dev ## build wheel, sdist, chart, SBOM and Debian packages into dist/ (3 min), SIGN=KEY
	@rm -rf dist
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} \
	  $(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m tests.chart_archive dist
	$(BIN)/python -m tests.bills dist
	@if [ -e $(KEYRING) ] && command -v apt-get >/dev/null && command -v mmdebstrap >/dev/null; \
	  then $(MAKE) --no-print-directory deb; \
	  else echo 'NO DEBIAN PACKAGES: they need apt-get, mmdebstrap and debian-archive-keyring' >&2; fi
	$(BIN)/python -m tests.provenance dist $(SIGN)

deb: $(VENV)/.installed-dev ## build Debian packages from the wheel in dist/ (5 min; 20 at first), ARCH=amd64 for one
	$(BIN)/python -m tests.debian_package $(ARCH)

bundle: $(VENV)/.installed-dev ## make one file of dist/ to install without a network, IMAGE=leafcast SIGN=KEY
	$(BIN)/python -m tests.bundle_parts dist $(IMAGE)
	@rm -f dist/leafcast-bundle.tar
	$(BIN)/leafcast bundle make dist -o dist/leafcast-bundle.tar $(if $(SIGN),--sign $(SIGN))

# The tests that take pictures of documents as they go.
OF_PAGE := test_each_view_is_whole_in_light_dark_and_narrow
OF_DOCUMENTS := test_commands_in_documents_print_what_is_shown
# Figures are of two cores that have nothing else to do.
begins = date +%s >$(VENV)/.began-$@; echo 'make $@ takes up to $(1) on two cores.' >&2
ends = echo "make $@ took $$(( $$(date +%s) - $$(cat $(VENV)/.began-$@) )) s." >&2
# Seeds need no time of their own: tests of servers wait for most of theirs, and go first.
IN_SPARE_TIME = nice -n 10 $(BIN)/python -m tests.simulation --jobs 1 --no-mutants --first 1000
# What runs beside tests uses one processor alone. What it says comes after them; both have to be
# content.
beside = $(1) >$(VENV)/beside.said 2>&1 & other=$$!; trap 'kill $$other 2>/dev/null; exit 130' INT TERM; \
	$(2); tests=$$?; wait $$other; other=$$?; cat $(VENV)/beside.said; [ $$tests -eq 0 ] && [ $$other -eq 0 ]
COVER = --cov --cov-report=term:skip-covered

# Installed once, and again when pyproject.toml changes. Editable: the code runs as it stands here.
$(VENV)/.installed: pyproject.toml | $(BIN)/pip
	@echo 'Installing Leafcast into $(VENV) ...' >&2
	@$(call install,--editable .)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/pip
	@echo 'Installing Leafcast and its development tools into $(VENV) ...' >&2
	@$(if $(LOCK),$(call install,--require-hashes --requirement $(LOCK)))
	@$(call install,$(if $(LOCK),--no-deps --no-build-isolation --editable .,--editable '.[dev]'))
	@touch $(VENV)/.installed $@

# With LOCK=.ci/requirements.txt nothing is installed but files of these hashes.
# Modules are compiled as they are imported: of the thousands in kubernetes hardly one ever is.
# Every five seconds it says what pip does, so that one sees it live. What is wrong pip says itself.
install = log=$(VENV)/install.log; began=$$(date +%s); said=0; \
	$(PIP) install --no-compile $(1) >"$$log" & pip=$$!; \
	trap 'kill $$pip 2>/dev/null; exit 130' INT TERM; \
	while kill -0 $$pip 2>/dev/null; do \
	  sleep 0.2 2>/dev/null || sleep 1; \
	  passed=$$(($$(date +%s) - began)); \
	  if [ $$passed -ge $$((said + 5)) ]; then \
	    said=$$passed; \
	    doing=$$(sed -n 's/^\(Collecting\|Installing\|Building\|Preparing\) /&/p' "$$log" | tail -n 1 | cut -c1-60); \
	    echo "  $$passed s: $$doing" >&2; \
	  fi; \
	done; \
	wait $$pip || { \
	echo 'error: pip could not install Leafcast: see its message above. It needs to reach PyPI, or an' >&2; \
	echo '  index named by PIP_INDEX_URL; if $(VENV) itself is broken, remove it and run make again.' >&2; exit 1; }

# ensurepip writes bin/pip last, so its presence means that the environment is whole.
$(BIN)/pip:
	@new=; able=; \
	for python in $(PYTHONS); do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	  new="$$python"; \
	  "$$python" -c 'import ensurepip, venv' 2>/dev/null || continue; \
	  able="$$python"; break; \
	done; \
	if [ -z "$$new" ]; then \
	  echo 'error: Leafcast needs Python 3.11 or later; none was found among: $(strip $(PYTHONS)).' >&2; \
	  echo '  Install one and run make again, or name it: make demo PYTHON=/path/to/python3' >&2; exit 1; \
	elif [ -z "$$able" ]; then \
	  echo "error: $$new cannot make virtual environments: its module venv or ensurepip is missing." >&2; \
	  echo '  On Debian and Ubuntu: apt install python3-venv' >&2; exit 1; \
	fi; \
	"$$able" -m venv --clear $(VENV)
