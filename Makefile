# Everything a contributor or a curious visitor runs. `make` alone lists the targets.
#
#   make demo PYTHON=python3.12      another interpreter for the environment
#   make test ARGS="tests/layers"    only some tests
#   make test JOBS=8                 more test processes

PYTHON ?= python3
JOBS ?= 2
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
EXAMPLES_READY := $(VENV)/.ready-examples
DEV_READY := $(VENV)/.ready-dev

# Folders at the top that are subpackages of layrubnet (see [tool.setuptools.package-dir]).
SUBPACKAGES := layers solvers memory comm proto
TYPES := build/types/layrubnet

# One BLAS thread per test process: more would fight over the cores. `worksteal` keeps the tests
# of a file together where it can, so that they share what their fixtures build.
PYTEST = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 \
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -rfEs --durations=10

MNIST := examples/mnist
MNIST_ITERATIONS := $(shell sed -n 's/^max_iter: *//p' $(MNIST)/lenet_solver.prototxt)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-full lint format types clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(EXAMPLES_READY) ## train LeNet on real digits, then check that accuracy >= 0.97
	$(BIN)/python $(MNIST)/make_data.py
	mkdir -p $(MNIST)/out
	$(BIN)/layrubnet train $(MNIST)/lenet_solver.prototxt \
		--plot $(MNIST)/out/loss.png --log-dir $(MNIST)/out
	$(BIN)/layrubnet test --model $(MNIST)/lenet_train_test.prototxt \
		--weights $(MNIST)/out/lenet_iter_$(MNIST_ITERATIONS).caffemodel \
		--iterations 10 --min accuracy=0.97

test: $(DEV_READY) ## run the tests (ARGS="tests/layers -k conv" runs some of them)
	$(PYTEST) $(ARGS)

test-full: $(DEV_READY) ## run the tests and the long suites
	$(PYTEST) -m "" $(ARGS)

lint: $(DEV_READY) ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(DEV_READY) ## let ruff repair what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# mypy follows folders, not package-dir: give it a tree of links with the package's real shape.
types: $(DEV_READY) ## check the types
	@rm -rf $(TYPES) && mkdir -p $(TYPES)
	@cd $(TYPES) && ln -s ../../../layrubnet/* . \
		&& for package in $(SUBPACKAGES); do ln -s ../../../$$package $$package; done
	cd build/types && ../../$(BIN)/mypy --config-file ../../pyproject.toml \
		--cache-dir ../../.mypy_cache -p layrubnet

clean: ## remove the environment, caches and everything that was built or trained
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf $(MNIST)/data $(MNIST)/out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# pip is the last thing that venv installs: where it is missing, the environment is not complete.
$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "layrubnet needs Python >= 3.11: make ... PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) \
		|| { echo "hint: Debian and Ubuntu keep venv in the package python3-venv" >&2; exit 1; }

$(VENV)/.ready-%: pyproject.toml | $(BIN)/pip
	@echo "installing layrubnet[$*] into $(VENV) (about a minute, once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@
