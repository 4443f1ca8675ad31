# Every target makes its own environment in .venv; only Python >= 3.11, make and git must be there.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.ready-run
READY := $(VENV)/.ready
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help
help: ## Explain the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(RUN) ## Train, evaluate and search on made-up scenes; minutes
	@$(BIN)/adaptiveembed demo

.PHONY: test
test: $(READY) ## Run the test suite
	@rm -f $(VENV)/.tested
	$(BIN)/python -m pytest
	@$(CLEAN_COMMIT) > $(VENV)/.tested || rm -f $(VENV)/.tested

.PHONY: check
check: format lint spelling layers types tested docs package ## Run the whole gate, the same here and in CI

.PHONY: fix
fix: $(READY) ## Format the code and mend what the linter can mend
	$(BIN)/ruff check --fix --quiet || true
	$(BIN)/ruff format

.PHONY: bench
bench: $(VENV)/.ready-bench ## Measure speed beside other libraries
	@$(BIN)/python -m benchmarks

.PHONY: study
study: $(RUN) ## Compare all methods on scenes over three seeds; hours, and resumable
	@$(BIN)/adaptiveembed study scenes --output build/study

.PHONY: kills
kills: $(READY) ## Kill trainings and the feature writer; minutes, with a fixed seed
	$(BIN)/python -m tests.kills.training --kills 3 --seed 0
	$(BIN)/python -m tests.kills.feature_writer --kills 20 --seed 0
	$(BIN)/python -m tests.kills.encoding --pictures 2000 --kills 5 --seed 0

.PHONY: docs
docs: $(READY) ## Build the documentation into site/
	$(BIN)/zensical build --clean --strict

.PHONY: news
news: $(READY) ## Show the change log of the next release
	@$(BIN)/towncrier build --draft --version "next release"

.PHONY: mutants
mutants: $(VENV)/.ready-mutants ## Change the code in many small ways; the tests must notice
	$(BIN)/mutmut run
	@$(BIN)/mutmut results

.PHONY: hooks
hooks: $(READY) ## Check each commit before it is made
	$(BIN)/prek install

.PHONY: clean
clean: ## Remove caches, dist and site; keep the environment and results
	rm -rf dist site mutants .cache .coverage .hypothesis .import_linter_cache
	rm -rf .mypy_cache .pytest_cache .ruff_cache

# The steps of `make check`.

.PHONY: format
format: $(READY)
	$(BIN)/ruff format --check

.PHONY: lint
lint: $(READY)
	$(BIN)/ruff check

.PHONY: spelling
spelling: $(READY)
	$(BIN)/typos

.PHONY: layers
layers: $(READY)
	$(BIN)/lint-imports --no-logo

.PHONY: types
types: $(READY)
	$(BIN)/mypy

# The id of the commit, if nothing has been changed since.
CLEAN_COMMIT = test -z "$$(git status --porcelain)" && git rev-parse HEAD

.PHONY: tested
tested: $(READY)
	@commit=$$($(CLEAN_COMMIT) || true); \
	if [ -n "$$commit" ] && [ "$$commit" = "$$(cat $(VENV)/.tested 2>/dev/null)" ]; then \
	  echo "The tests have passed on this commit, $$commit; not run again."; \
	else \
	  $(MAKE) --no-print-directory test; \
	fi

# Builds the sdist, the wheel from the sdist, and runs both installed into an empty environment.
.PHONY: package
package: $(READY)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist . > /dev/null
	@for file in dist/*.whl dist/*.tar.gz; do \
	  empty=$$(mktemp -d); \
	  $(BIN)/python -m venv "$$empty"; \
	  "$$empty/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$$file"; \
	  "$$empty/bin/adaptiveembed" --help > /dev/null; \
	  echo "$$file: $$("$$empty/bin/adaptiveembed" --version)"; \
	  rm -rf "$$empty"; \
	done

# The environments. A change of the settings or of the versions renews them.

$(RUN): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || { \
	  echo "AdaptiveEmbed needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)."; \
	  echo "Name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV) || { \
	  echo "'$(PYTHON) -m venv' does not work; on Debian or Ubuntu: apt install python3-venv"; exit 1; }
	@echo "Installing into $(VENV); the first time this takes some minutes."
	@$(INSTALL) --editable .
	@touch $@

$(READY): $(RUN)
	@$(INSTALL) --editable '.[dev,encoders,adapters]'
	@rm -f $(VENV)/.tested
	@touch $@

$(VENV)/.ready-%: $(READY)
	@$(INSTALL) --editable '.[$*]'
	@touch $@
