# make reproduce      install, make all tables and figures    PRESET=smoke|reduced|paper PAPERS=a,b CORES=n DATA_DIR=...
#                     or only some of them                        TARGETS="fedosd_table8 fedosd_fig5"
#                     or on a cluster (docs/cluster.md)           PROFILE=slurm
# make show           list tables, figures, scenarios, methods    PRESET, PAPERS, DATA_DIR as above, here and below
# make show CELL=...  print the command that makes a result, or list the results in fedosd/mnist-pat50, fedosd_table8
# make why            list the jobs that would run, and why       TARGETS
# make plan           estimate jobs, hours, memory, disk space and downloads   TARGETS
# make decide         list what would decide each claim still open on real data, and at what cost   TARGETS
# make verify         check that no result was changed and that every table and figure matches its inputs   TARGETS
# make bundle         zip tables and figures for sharing, without models and data (docs/sharing.md)   TARGETS
# make verify BUNDLE=...    check a bundle: no file changed, none missing
# make keep RUN=... TARGETS=...   copy tables and figures into docs/measurements (docs/sharing.md)
# make compare A=... B=...  show how two runs differ: results folders (results/smoke) or bundles   TARGETS
# make oracles        zip original and retrained models for audits without training (docs/oracles.md)   TARGETS
# make audit          audit your models' logits from such an archive   ORACLES=... PREDICTIONS=... CSV=...
# make cluster        install what PROFILE=slurm needs (docs/cluster.md)
# make test           install, then run all linters, type checks and tests: six minutes on two cores
# make lint           the same without the tests
# make contract       check every plug-in against the rules in docs/contract.md   PLUGINS=my_plugins
# make docs           regenerate the pages on settings, plug-ins and papers
# make rulegraph      redraw docs/rulegraph.svg with Graphviz
# make test-smoke     make and check one table or figure of each kind; test edits, kills and submission: minutes
# make test-page      open results/<preset>/index.html in Chromium and compile every .tex, where these are installed
# make test-faults    kill jobs, fill the disk, fuzz inputs: minutes
# make test-cluster   run on a Slurm cluster on this machine, with injected faults: minutes
# make test-engines   run on the oldest and the newest supported Snakemake: minutes
# make test-peers     run pfl and Flower once, as make benchmark-peers does, and examples/flower: minutes
# make test-all       all of these, all of smoke and make mutants: hours; resumes if stopped   PARTS="faults mutants"
# make mutants        mutation testing: break one line at a time and run the tests   PARTS="evaluation stages"
# make benchmark      compare the speed with a plain loop         DATA_DIR=... (with mnist.npz)
# make benchmark-scale  measure time and memory against clients, data, kept models, jobs and results: half an hour
# make benchmark-peers  compare the speed with pfl and Flower, in a separate environment: minutes   DATA_DIR=...
# make sbom           write dist/sbom.cdx.json, a CycloneDX list of the packages in envs/lock.txt (docs/container.md)
# make release        write wheel, sdist, SBOM and kept results to dist, and test that each installs: minutes
# make unlock         remove the lock left by a killed run
# make version        print the version and the commit
# make help           print this help
PYTHON ?= python3
CORES ?= all
BIN := .venv/bin

# User input is plain text: neither make nor the shell evaluates it.
GIVEN := PYTHON CORES PROFILE PRESET PAPERS DATA_DIR TARGETS PLUGINS CELL PARTS BUNDLE RUN A B ORACLES PREDICTIONS CSV
UNKNOWN := $(filter-out $(GIVEN),$(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name))))
define line_break


endef
$(foreach name,$(GIVEN),$(eval override $(name) := $$(value $(name))))
$(foreach name,$(GIVEN),$(if $(findstring $(line_break),$($(name))),$(error $(name) must not contain a line break)))
quoted = '$(subst ','\'',$(1))'
# Make would ignore a misspelt variable.
HINT := import difflib, sys; print(*[f"; did you mean {name}?" for name in difflib.get_close_matches(sys.argv[1].upper(), sys.argv[2:], 1)] or ";")
ifneq ($(UNKNOWN),)
  hint := $(shell python3 -c $(call quoted,$(HINT)) $(call quoted,$(firstword $(UNKNOWN))) $(GIVEN))
  $(error there is no variable '$(firstword $(UNKNOWN))'$(hint) allowed: $(GIVEN); all other settings are in config.yaml)
endif
python := $(call quoted,$(PYTHON))
parts := $(foreach part,$(PARTS),$(call quoted,$(part)))
# `python -m fu` takes what make takes: each command of these variables what it needs.
SHOWN := PRESET PAPERS DATA_DIR TARGETS PROFILE CELL BUNDLE RUN A B ORACLES PREDICTIONS CSV
fu = $(BIN)/python -m fu $@ $(foreach name,$(SHOWN),$(if $($(name)),$(call quoted,$(name)=$($(name)))))

.PHONY: reproduce oracles audit cluster test test-engines test-peers test-all test-smoke test-page test-faults test-cluster mutants lint contract show why verify bundle keep compare plan decide benchmark benchmark-scale benchmark-peers sbom release unlock docs rulegraph version help
.DEFAULT_GOAL := reproduce

# Rebuilt when the lock file changes; an incomplete one has no stamp.
.venv/installed: envs/lock.txt
	@$(python) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || \
	  { printf "fu needs Python 3.11, 3.12 or 3.13, but '%s' is %s; choose another one: make PYTHON=python3.12\n" \
	    $(python) "$$($(python) --version 2>&1 | head -n 1)" >&2; exit 1; }
	@$(python) -c 'import venv, ensurepip' 2>/dev/null || \
	  { printf "'%s' has no venv module; install it (Debian: apt-get install python3-venv).\n" $(python) >&2; exit 1; }
	@[ ! -e .venv ] || $(python) -c 'import fcntl, glob; [fcntl.flock(open(run, "a"), fcntl.LOCK_EX | fcntl.LOCK_NB) for run in \
	  glob.glob(".snakemake/runs/*")]' 2>/dev/null || \
	  { echo "error: envs/lock.txt: was changed while a run is active in this folder; wait until it ends, or kill it." >&2; exit 1; }
	@echo "Installing the $$(grep -c == envs/lock.txt) packages of envs/lock.txt into .venv, including PyTorch and Snakemake: 1.6 GB on" \
	  "disk, more with PyTorch's CUDA build. This happens once and takes minutes without output."
	rm -rf .venv
	$(python) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r envs/lock.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

# Needed on clusters only, hence not in the lock file.
.venv/cluster: envs/cluster.txt .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r envs/cluster.txt
	@touch $@

cluster: .venv/cluster

reproduce oracles: .venv/installed $(if $(PROFILE),.venv/cluster)
	@{ mkdir -p .snakemake && room=$$(mktemp -d .snakemake/room-XXXXXX) && \
	  (for n in 1 2 3 4 5 6 7 8 9; do echo > $$room/$$n || exit 1; done); } 2>/dev/null; \
	  full=$$?; rm -rf "$$room"; [ $$full = 0 ] || \
	  { echo "error: .snakemake: cannot write files; free disk space (df -h and df -i show space and inodes) or fix the permissions." >&2; \
	    exit 1; }
	@$(fu) $(call quoted,CORES=$(CORES))

# One process per core; each needs up to 2 GB.
SPREAD := -n logical --maxprocesses 8 --dist worksteal

test: lint
	$(BIN)/python -m pytest $(SPREAD) tests

test-all: .venv/installed
	@$(BIN)/python -m tests.all $(parts)

# On the oldest and the newest Snakemake that pyproject.toml allows, each in its own environment.
test-engines: .venv/installed
	$(BIN)/python -m tests.engines

test-smoke: .venv/installed
	$(BIN)/python -m pytest $(SPREAD) -m small tests

test-page: .venv/installed
	$(BIN)/python -m pytest -m "page or not page" tests/pipeline/page tests/artefacts/test_tex.py

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/snakemake --lint

contract: .venv/installed
	@FU_PLUGINS=$(call quoted,$(PLUGINS)) $(BIN)/python -m pytest -qq -rN --tb=short --show-capture=no -o console_output_style=classic \
	  -p tests.contract.report tests/contract

docs: .venv/installed
	@$(BIN)/python -m fu.pipeline.documents.pages
	@$(BIN)/python -m tests.contract.rules

# Without rules that read their own kind, and without the way back from `select`, which would tangle it; `tabulate` reads
# the same as `publish`.
FORWARD := E[tail == head || (tail.label == "select" && head.label != "publish")] {delete($$G, $$)}
rulegraph: .venv/installed
	$(BIN)/snakemake --forceall --rulegraph | gvpr -c 'N[label == "tabulate"] {delete($$G, $$)}' | gvpr -c '$(FORWARD)' | tred \
	  | sed 's/label=publish\b/label="publish, tabulate"/' | dot -Grankdir=LR -Tsvg > docs/rulegraph.svg

help:
	@sed -n '/^#/!q; s/^# //p' Makefile

show why plan decide verify bundle keep audit compare unlock version: .venv/installed
	@$(fu)

test-faults: .venv/installed
	$(BIN)/python -m tests.faults.fuzz_files
	$(BIN)/python -m tests.faults.fuzz_settings
	$(BIN)/python -m tests.faults.kills

test-cluster: .venv/cluster
	$(BIN)/python -m tests.cluster

mutants: .venv/installed
	$(BIN)/python -m tests.mutants $(parts)

benchmark: .venv/installed
	$(BIN)/python -m benchmarks.fedavg_round $(if $(DATA_DIR),--data-dir=$(call quoted,$(DATA_DIR)))

benchmark-scale: .venv/installed
	$(BIN)/python -m benchmarks.scale

# If one cannot be installed, the table says so.
.venv-peers/installed: envs/peers.txt .venv/installed
	rm -rf .venv-peers
	$(python) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -r envs/peers.txt && touch $@ || true

benchmark-peers: .venv-peers/installed
	$(BIN)/python -m benchmarks.peers --peers-python .venv-peers/bin/python \
	  $(if $(DATA_DIR),--data-dir=$(call quoted,$(DATA_DIR)))

# One round of each, of which none may be missing, and the app in examples/flower.
test-peers: .venv-peers/installed
	$(BIN)/python -m benchmarks.peers --peers-python .venv-peers/bin/python --rounds 3 --passes 1 --all
	$(BIN)/python -m pytest tests/peers/flower.py

# The tool is not in the lock file.
.venv-sbom/installed:
	rm -rf .venv-sbom
	$(python) -m venv .venv-sbom
	.venv-sbom/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0
	@touch $@

sbom: .venv-sbom/installed
	@mkdir -p dist
	.venv-sbom/bin/cyclonedx-py requirements envs/lock.txt --pyproject pyproject.toml --output-reproducible --output-file dist/sbom.cdx.json

release: .venv/installed
	$(BIN)/python -m tests.release
