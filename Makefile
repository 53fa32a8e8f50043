# Two commands do everything on a machine that has only Python 3.11 or newer:
#   make quickstart   sets up and shows the first result
#   make test         sets up and checks everything that needs no browser and no minutes
PYTHON ?= python3
BIN := .venv/bin

.PHONY: quickstart test test-system clean

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "calmfed needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/developing: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,system]'
	touch $@

quickstart: .venv/installed
	$(BIN)/calmfed study quickstart

test: .venv/developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 -m 'not system'
	$(BIN)/python -m pytest --doctest-modules --ignore-glob='*/presets/*' src

test-system: .venv/developing
	$(BIN)/python -m pytest -m system

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
