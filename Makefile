# Everything needs only python3 (3.11 or newer), make and g++; the rest is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKBENCH := $(BIN)/workbench
ARGS ?=

.PHONY: help demo test test-vllm test-referee lint bench install clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST)

demo: install  ## open the workbench on a bundled task and optimise at once
	@$(WORKBENCH) demo $(ARGS)

test: lint  ## lint, types, import contracts and all tests
	$(BIN)/pytest -n 2 $(ARGS)

test-referee: install  ## every exploit and every honest twin through the referee once (half an hour)
	WORKBENCH_SLOW=1 $(BIN)/pytest tests/workbench/test_refereeing.py -m slow $(ARGS)

test-vllm: install  ## the real vLLM with SmolLM2-135M on this CPU (the first time: 4 GB of downloads)
	@begun=$$(date +%s); place=$$(tests/vllm/setup.sh) && \
	KERNEL_WORKBENCH_VLLM=$$place $(BIN)/pytest tests/vllm -x -s -p no:cacheprovider $(ARGS); status=$$?; \
	echo "make test-vllm took $$(( $$(date +%s) - begun )) s"; exit $$status

lint: install  ## formatting, lint, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/lint-imports

bench: install  ## optimise every bundled task in turn and print the table (ARGS="--minutes 3")
	$(WORKBENCH) bench tasks $(ARGS)

install: $(STAMP)  ## the virtual environment alone

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean:  ## remove the virtual environment and what tools cached
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
