# Each target does its own set-up on a machine that has only Python 3.11 or newer and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test validate bench lint clean

demo: $(VENV)/installed
	$(BIN)/study demo demo-study

test: $(VENV)/installed-test
	$(BIN)/python -m pytest

validate: $(VENV)/installed-test
	$(BIN)/python -m pytest -m slow

bench: $(VENV)/installed-test
	$(BIN)/python -m pytest tests/benchmarks -m benchmark_only -s

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/lint-imports

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/installed-test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) demo-study
