# make reproduce   set up and make every table and figure       PRESET=smoke|reduced|paper PAPERS=a,b CORES=n DATA_DIR=...
#                  or some of them                              TARGETS="fedosd_table8 fedosd_fig5"
# make test        set up and run lint, format, types, import contracts and all tests
# make contract PLUGINS=my_folder                               test plug-ins of one's own against their contracts
# make show CELL=fedosd/mnist-pat50/seed0/fedosd.unlearned      print the command of one result
# make benchmark   measure speed against a plain loop           DATA_DIR=... (with mnist.npz)
# make unlock      remove the lock of a killed run
PYTHON ?= python3
CORES ?= all
BIN := .venv/bin
CONFIG := $(if $(PRESET),preset=$(PRESET)) $(if $(PAPERS),papers=$(PAPERS)) $(if $(DATA_DIR),'data_dir=$(DATA_DIR)')
WITH_CONFIG := $(if $(strip $(CONFIG)),--config $(CONFIG))

.PHONY: reproduce test lint contract show benchmark unlock
.DEFAULT_GOAL := reproduce

# Made anew when the lock changes; a half-made one has no stamp.
.venv/installed: envs/lock.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || \
	  { echo "fu needs Python 3.11, 3.12 or 3.13, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1 | head -n 1); name another with: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "'$(PYTHON)' has no venv module; install it (Debian: apt-get install python3-venv)." >&2; exit 1; }
	rm -rf .venv
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r envs/lock.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

reproduce: .venv/installed
	$(BIN)/snakemake --cores $(CORES) --quiet rules host $(WITH_CONFIG) $(if $(TARGETS),-- $(TARGETS))
	@$(BIN)/python -m fu.pipeline.show results $(CONFIG)

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile tests

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/snakemake --lint

contract: .venv/installed
	FU_PLUGINS='$(PLUGINS)' $(BIN)/python -m pytest -q tests/contract

show: .venv/installed
	@$(BIN)/python -m fu.pipeline.show cell $(CELL) $(CONFIG)

benchmark: .venv/installed
	$(BIN)/python -m benchmarks.fedavg_round $(if $(DATA_DIR),--data-dir '$(DATA_DIR)')
	$(BIN)/python -m benchmarks.plan

unlock: .venv/installed
	$(BIN)/snakemake --unlock $(WITH_CONFIG)
