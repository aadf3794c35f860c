# Each target does its own set-up on a machine that has only Python 3.11 or newer and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo paper app test validate soak bench lint clean

demo: $(VENV)/installed
	$(BIN)/study demo demo-study

# The published study's twin (simulated ratings), its report and figures, and every published number beside ours.
paper: $(VENV)/installed
	$(BIN)/study simulate --published --into paper
	$(BIN)/analysis report paper
	$(BIN)/analysis published paper
	@echo "paper/report.html: the report; paper/figures: its figures; paper/tables: its tables"
	@echo "paper/results/side-by-side.html: published and reproduced, with .csv, .json, .tex and .svg beside it"

# The demo study in the rating app: one link per role is printed.
app: $(VENV)/installed
	test -f app-study/study.toml || $(BIN)/study new app-study --title "Rating app, demo"
	test -f app-study/responses.parquet || $(BIN)/generation run app-study
	test -f app-study/assignment.parquet || $(BIN)/study assign app-study
	$(BIN)/annotation_app serve app-study --links

# Two processes, a file of tests in one of them: much of the time goes into waiting for servers and browsers.
test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n 2 --dist loadfile --benchmark-disable

# With the small real model, which is 130 MB and therefore not part of `make test`.
validate: $(VENV)/installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,local]'
	$(BIN)/python -m pytest -m slow

# 200 kills of the rating app under load.
soak: $(VENV)/installed-test
	$(BIN)/python -m pytest tests/annotation_app -m slow -s

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
	rm -rf $(VENV) demo-study demo-release app-study paper
