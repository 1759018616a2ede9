# Each target makes its own virtual environment, installs what it needs and runs. Versions come from constraints.txt, or for
# test-lowest from constraints-lowest.txt.
PYTHON ?= python3
PYTHONS ?= $(PYTHON)
export PIP_CONSTRAINT = $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK = 1
unexport PYTHONDONTWRITEBYTECODE  # each worker of the tests would compile the package and rewrite the tests anew

.PHONY: demo figures test test-studies test-all test-lowest test-nightly test-adapters coverage lint docs check-pages check-search check-reports mutate release-check clean

demo: .venv-demo/ready
	.venv-demo/bin/isopleth demo

test: .venv-test/ready lint
	.venv-test/bin/python -m pytest -m "not slow" -n auto --dist loadfile

test-studies: .venv-test/ready  # experiments and benchmarks
	.venv-test/bin/python -m pytest -m "not slow" -n auto --dist loadfile -o norecursedirs=".*" tests/studies

coverage: .venv-test/ready  # a target of its own, because the tests take much longer while lines are counted
	.venv-test/bin/python -m pytest -m "not slow" -n auto --dist loadfile --cov --cov-report=term --cov-fail-under=97

test-all: .venv-test/ready
	.venv-test/bin/python -m pytest

# What depends on the versions of other libraries: conventions, tables, files, array libraries, the console, pictures.
LOWEST = tests/contracts/test_estimators.py tests/contracts/test_tensors.py tests/test_namespace.py tests/contracts/test_scaled_columns.py tests/contracts/test_columns.py \
	tests/contracts/test_column_order.py tests/contracts/test_validation.py tests/io tests/cli tests/results tests/distributed tests/torch_functions \
	tests/kernels/test_kernels.py tests/score/test_score_tensors.py tests/difference/test_difference_tensors.py tests/tasks/test_task_tensors.py

test-lowest: .venv-lowest/ready
	.venv-lowest/bin/python -m pytest -q -m "not slow" -n auto --dist loadfile $(LOWEST)

# The same tests with the latest wheels of NumPy, SciPy, scikit-learn, pandas and pyarrow, from the index in NIGHTLY_WHEELS.
test-nightly: .venv-nightly/ready
	.venv-nightly/bin/python -m pytest -q -m "not slow" -n auto --dist loadfile $(LOWEST)

# Adapters, by the checks of the libraries that they are for.
test-adapters: .venv-adapters/ready
	.venv-adapters/bin/python -m pytest -q tests/adapters

figures: .venv-bench/ready  # results of experiments whose last run took less than an hour of a processor in all; DATA is their data
	.venv-bench/bin/python tools/figures.py --data $(DATA)

lint: .venv-test/ready
	.venv-test/bin/ruff format --check .
	.venv-test/bin/ruff check .
	.venv-test/bin/mypy

mutate: .venv-test/ready
	.venv-test/bin/python tools/mutate.py

docs: .venv-test/ready-for-docs
	rm -rf docs/_build docs/api docs/gallery docs/packages  # pages of names that are gone, pictures of code that has changed
	.venv-test/bin/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

check-pages:  # after `make docs`; needs Chromium
	$(PYTHON) tools/check_pages.py

check-search:  # after `make docs`; needs Node.js
	$(PYTHON) tools/check_search.py

check-reports: .venv-browser/ready  # needs Chromium
	.venv-browser/bin/python tools/check_reports.py

release-check:  # wheel and source distribution, in fresh environments of each Python in PYTHONS
	$(PYTHON) tools/release_check.py $(PYTHONS)

.venv-demo/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-demo
	.venv-demo/bin/python -m pip install -q -e ".[plot]"
	touch $@

.venv-test/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-test
	.venv-test/bin/python -m pip install -q torch==2.13.0  # first and by itself: it is large
	.venv-test/bin/python -m pip install -q -e ".[plot,xlsx,dask,torch,arviz,test]"
	touch $@

# The other libraries that experiments and benchmarks compare with.
.venv-bench/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install -q torch==2.13.0  # first and by itself: it is large
	.venv-bench/bin/python -m pip install -q -e ".[plot,torch,dask,bench]"
	touch $@

.venv-lowest/ready: export PIP_CONSTRAINT = $(CURDIR)/constraints-lowest.txt
.venv-lowest/ready: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install -q torch==2.13.0
	.venv-lowest/bin/python -m pip install -q -e ".[plot,xlsx,dask,torch,arviz,test]"
	touch $@

.venv-nightly/ready: export PIP_CONSTRAINT =
.venv-nightly/ready: pyproject.toml
	test -n "$(NIGHTLY_WHEELS)"  # the index of nightly wheels
	$(PYTHON) -m venv .venv-nightly
	.venv-nightly/bin/python -m pip install -q -e ".[plot,xlsx,test]"
	.venv-nightly/bin/python -m pip install -q --pre --upgrade --index-url "$(NIGHTLY_WHEELS)" numpy scipy scikit-learn pandas pyarrow
	touch $@

# sktime 1.2 wants a pandas older than that of constraints.txt, so pandas is not constrained where adapters are installed.
.venv-adapters/ready: export PIP_CONSTRAINT = $(CURDIR)/.venv-adapters/constraints.txt
.venv-adapters/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-adapters
	grep -v '^pandas==' constraints.txt > .venv-adapters/constraints.txt
	.venv-adapters/bin/python -m pip install -q -e ".[adapters,test]"
	touch $@

.venv-browser/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-browser
	.venv-browser/bin/python -m pip install -q -e . playwright
	touch $@

# The pages are built where the tests run: torch, pyarrow and SciPy are there, and Sphinx is small beside them. Libraries that adapters
# are for are not needed (docs/conf.py).
.venv-test/ready-for-docs: .venv-test/ready
	.venv-test/bin/python -m pip install -q -e ".[docs]"
	touch $@

clean:
	rm -rf .venv-demo .venv-test .venv-lowest .venv-nightly .venv-adapters .venv-browser build dist .coverage htmlcov docs/_build docs/api docs/gallery
