# Each target makes its own virtual environment, installs what it needs and runs. Versions come from constraints.txt.
PYTHON ?= python3
export PIP_CONSTRAINT = $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test test-all lint docs check-pages mutate clean

demo: .venv-demo/ready
	.venv-demo/bin/isopleth demo

test: .venv-test/ready lint
	.venv-test/bin/python -m pytest -m "not slow" --cov --cov-report=term

test-all: .venv-test/ready
	.venv-test/bin/python -m pytest

lint: .venv-test/ready
	.venv-test/bin/ruff format --check .
	.venv-test/bin/ruff check .
	.venv-test/bin/mypy

mutate: .venv-test/ready
	.venv-test/bin/python tools/mutate.py --out tools/mutants.csv

docs: .venv-docs/ready
	rm -rf docs/_build docs/api docs/gallery  # pages of names that are gone, pictures of code that has changed
	.venv-docs/bin/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

check-pages:  # after `make docs`; needs Chromium
	$(PYTHON) tools/check_pages.py

.venv-demo/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-demo
	.venv-demo/bin/python -m pip install -q -e ".[plot]"
	touch $@

.venv-test/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-test
	.venv-test/bin/python -m pip install -q torch==2.13.0  # first and by itself: it is large
	.venv-test/bin/python -m pip install -q -e ".[plot,parquet,dask,torch,test]"
	touch $@

.venv-docs/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install -q torch==2.13.0
	.venv-docs/bin/python -m pip install -q -e ".[plot,parquet,dask,torch,docs]"
	touch $@

clean:
	rm -rf .venv-demo .venv-test .venv-docs build dist .coverage htmlcov docs/_build docs/api docs/gallery
