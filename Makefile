# One target for each habit. Paths are relative, so a clone works anywhere; python3 must be 3.11 or newer.
PYTHON ?= python3
PIP := .venv/bin/python -m pip --disable-pip-version-check
STAMP := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help house venv demo reproduce test test-fast lint docs site release bench clean
.DELETE_ON_ERROR:

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

venv: $(STAMP)  ## make .venv with pyloca and its tools, at the versions of constraints.txt

# Nothing is installed again until one of these two files changes.
$(STAMP): pyproject.toml constraints.txt
	@echo "installing pyloca and what it needs into .venv (a minute or two) ..."
	@$(PYTHON) -m venv .venv
	@$(PIP) install -qq -c constraints.txt -e '.[all]'
	@touch $@

demo: $(STAMP)  ## fit two of the paper's examples, print a table and write pictures to demo/
	.venv/bin/pyloca demo

reproduce: $(STAMP)  ## redo every figure and number of the paper, ten seeds, into reproduce/ (an hour or two)
	.venv/bin/pyloca reproduce

# One worker per core, one thread per worker: networks this small gain little from more.
test: $(STAMP)  ## run all tests and docstring examples, and print the coverage
	OMP_NUM_THREADS=1 .venv/bin/python -m pytest -n auto --dist loadfile --cov --cov-report=term

test-fast: $(STAMP)  ## leave out the slow tests and the docstring examples
	OMP_NUM_THREADS=1 .venv/bin/python -m pytest -n auto --dist loadfile -m "not slow" tests

house: $(STAMP)  ## print which package imports which, floor by floor
	.venv/bin/python tools/house.py

lint: $(STAMP)  ## check style, format and types
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy

docs: $(STAMP)  ## write the generated parts of the documentation
	.venv/bin/python -m benchmarks.docs

# What the site needs beyond the tests (Sphinx, and the simulators of the gallery) is installed once, beside it.
.venv/.site: $(STAMP)
	@echo "installing Sphinx and the packages of the gallery into .venv ..."
	@$(PIP) install -qq -c constraints.txt -e '.[site]'
	@touch $@

# One thread: on a busy machine several wait for each other. Examples that have not changed are not run again.
site: .venv/.site  ## build the site with its gallery into site/, check every link, look at pages in Chromium
	OMP_NUM_THREADS=1 MPLBACKEND=Agg .venv/bin/python -m sphinx -W --keep-going -q -d build/doctrees docs site
	.venv/bin/python tools/links.py site
	.venv/bin/python tools/look.py site

release: $(STAMP)  ## build sdist and wheel into dist/ and check what a package index would show
	@$(PIP) install -qq -c constraints.txt -e '.[release]'
	rm -rf dist
	.venv/bin/python -m build
	.venv/bin/python -m twine check --strict dist/*

bench: $(STAMP)  ## run all benchmarks
	.venv/bin/python -m benchmarks all

clean:  ## remove .venv, caches and everything that was generated
	rm -rf .venv .pytest_cache .hypothesis .coverage .mypy_cache .ruff_cache build dist demo reproduce
	rm -rf site docs/api docs/_generated docs/gallery docs/gallery_table.md docs/sg_execution_times.rst
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
