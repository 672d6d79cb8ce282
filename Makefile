# The commands of the README. Everything is set up in .venv on the first run.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The libraries that ours is compared with: an environment of their own.
PEERS := build/peers-venv
# The oldest torch that the package admits, alone.
OLDEST := build/oldest-venv

.PHONY: site test serve check slow mutants parity oldest bench format clean

site: $(READY)  ## Build site/ and print the page to open
	@$(BIN)/python -m build_tools site

test: $(READY)  ## Run all tests, those in the browser too
	@$(BIN)/python scripts/browser.py
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python -m pytest -n 2 --dist worksteal

serve: $(READY)  ## Show the site at http://127.0.0.1:8000 and follow every edit
	@$(BIN)/python -m build_tools serve

check: $(READY)  ## Find all faults in the content; write nothing
	@$(BIN)/python -m build_tools check

slow: $(READY)  ## What takes longer than the tests may: long tests, all mutants, other libraries, the oldest torch
	@$(BIN)/python -m pytest -m slow
	@$(MAKE) --no-print-directory parity oldest bench

mutants: $(READY)  ## Change every detail of the library and the laboratory; a test must notice (part of slow)
	@$(BIN)/python -m pytest -m slow tests/test_code_mutants.py

bench: $(READY) $(PEERS)/.ready  ## Time the build beside plain MkDocs, and ppo_core beside the peers; write the page about it
	@$(BIN)/python benchmarks/build.py
	@$(BIN)/python -m benchmarks.losses $(PEERS)/bin/python

parity: $(READY) $(PEERS)/.ready  ## Compare ppo_core with the libraries that do the same; write the pages about it
	@$(BIN)/python -m benchmarks.parity $(PEERS)/bin/python

oldest: $(READY) $(OLDEST)/.ready  ## Run the tests of ppo_core on the oldest torch that it admits
	@$(OLDEST)/bin/python -m pytest ppo_core tests/library --confcutdir=tests/library \
		--ignore=tests/library/test_library_surface.py \
		-W "ignore:Failed to initialize NumPy" -W "ignore:Skipping serialization"

format: $(READY)  ## Put the code into the one format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:  ## Remove everything that can be made again
	rm -rf $(VENV) build site

$(READY): pyproject.toml constraints.txt scripts/setup.py
	@$(PYTHON) scripts/setup.py $(VENV)
	@touch $(READY)

$(PEERS)/.ready: benchmarks/parity/peers.txt benchmarks/parity/environment.py
	@$(PYTHON) benchmarks/parity/environment.py $(PEERS)
	@touch $(PEERS)/.ready

$(OLDEST)/.ready: pyproject.toml constraints.txt scripts/oldest.py | $(READY)
	@$(BIN)/python scripts/oldest.py $(OLDEST)
	@touch $(OLDEST)/.ready
