# Everything that a contributor runs. `make` alone lists it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
CARGO ?= cargo
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip
DEMO := build/demo
# Of .ci/run: --again, tests that failed run once more, and are named as flaky if they pass then; --begin-within SECONDS.
TEST_OPTIONS ?=
RELEASE ?= bookworm

# cargo takes an empty CARGO_TARGET_DIR for a directory without a name, and fails.
ifeq ($(strip $(CARGO_TARGET_DIR)),)
unexport CARGO_TARGET_DIR
endif

# Flags in the environment take the place of all that stand in files: no program would be linked as it should be.
unexport RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_RUSTFLAGS CARGO_BUILD_TARGET

# Étude of another clone would stand before that of this one.
unexport PYTHONPATH PYTHONHOME

# Without Python's own cache each start of a program, of hundreds, compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

RUST_SOURCES := Cargo.toml $(wildcard Cargo.lock) rust-toolchain.toml $(wildcard .cargo/config.toml) \
	$(shell find engine -name target -prune -o -type f \( -name '*.rs' -o -name '*.S' -o -name Cargo.toml \) -print 2>/dev/null)
REQUIREMENTS_STAMP := $(VENV)/requirements.stamp
SETUP_STAMP := $(VENV)/setup.stamp

.PHONY: moved help setup demo io-lab test test-more test-random test-packages golden guest guest-where-possible test-guest nfs nfs-guest nfs-peak chain lint format bench docs man picture wheel deb release constraints advisories clean

help: ## list what can be made
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22

setup: $(SETUP_STAMP) ## make .venv with Étude in it, its engine in release; nothing is done twice

demo: $(SETUP_STAMP) $(DEMO)/text ## compare gzip -1 with gzip -5: a first real table
	@$(BIN)/etude bench -o $(DEMO)/$$(date -u +%Y%m%dT%H%M%S) \
		-n 'gzip -1' 'gzip -1 -c $(DEMO)/text' -n 'gzip -5' 'gzip -5 -c $(DEMO)/text'

test: test-packages $(SETUP_STAMP) ## the quick tests, one real thing of each kind among them: ten minutes
	@$(BIN)/python packaging/run_tests.py quick $(TEST_OPTIONS)

# make takes a line that names its own variable for one that also runs with `make -n`.
AGAIN = $(MAKE)

# All runs, also where the test machine could not be built.
test-more: test-packages $(SETUP_STAMP) ## all other tests: more examples, Miri, soaks, pages, Slurm, NFS, the test machine
	@status=0; packaging/part.sh 'test machine' 300 $(AGAIN) guest-where-possible || status=1; \
	packaging/part.sh 'Miri' 300 packaging/check-memory.sh $(CARGO) || status=1; \
	$(BIN)/python packaging/run_tests.py more $(TEST_OPTIONS) || status=1; exit $$status

test-random: $(SETUP_STAMP) ## look for new examples on which property tests fail; no verdict
	@$(BIN)/python packaging/run_tests.py random

golden: $(SETUP_STAMP) ## write the golden files of the tests anew: unchanged code leaves them unchanged
	ETUDE_GOLDEN=anew $(BIN)/python -m pytest -q tests/golden tests/unit tests/property

guest: wheel ## build the test machine: a Debian with Étude in it, booted by QEMU (docs/internals/guest.md)
	$(BIN)/python packaging/guest/build.py dist/*.whl

test-guest: guest-where-possible ## build the test machine, and all tests that use it; some minutes (skipped where it cannot be built)
	$(BIN)/python -m pytest tests/e2e/guest

nfs: $(SETUP_STAMP) ## NFS of versions 3 and 4, client and server CPU, by ganesha in namespaces (as root; docs/howto/nfs.md)
	$(BIN)/etude run examples/nfs/ganesha.ap

nfs-peak: $(SETUP_STAMP) ## the peak rate of an NFS server: four workloads, then over its threads (as root; docs/tutorials/nfs-peak.md); hours, NFS_PEAK=--brief a quarter of an hour
	@PATH="$(CURDIR)/$(BIN):$$PATH" examples/nfs-peak/run.sh $(NFS_PEAK) build/nfs-peak/$$(date -u +%Y%m%dT%H%M%S)

nfs-guest: guest ## the same of the kernel's server and client, in the test machine; some minutes
	$(BIN)/python tests/support/guest/run_example.py nfs/kernel.ap build/nfs-guest/$$(date -u +%Y%m%dT%H%M%S)

chain: $(SETUP_STAMP) ## a program recorded, and ext4 and xfs rated by its I/O (as root; docs/tutorials/chain.md); ten minutes
	PATH="$(CURDIR)/$(BIN):$$PATH" examples/chain/chain.sh build/chain-$$(date -u +%Y%m%dT%H%M%S)

# Of one profile with the tests: what both need (proc macros, build scripts, zstd in C) is compiled once.
lint: $(SETUP_STAMP) ## what must be clean: ruff, mypy, cargo fmt, clippy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(CARGO) fmt --all --check
	@echo '$(BIN)/mypy, and beside it $(CARGO) clippy --profile checks --workspace --all-targets -- -D warnings'
	@$(BIN)/mypy & status=0; $(CARGO) clippy --profile checks --workspace --all-targets -- -D warnings || status=1; \
	wait $$! || status=1; exit $$status
	@packaging/check-aarch64.sh $(CARGO)

format: $(SETUP_STAMP) ## put Python and Rust into their usual form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(CARGO) fmt --all

bench: $(SETUP_STAMP) ## what Étude itself costs, beside its peers
	$(BIN)/python bench/run.py

man: $(SETUP_STAMP) ## manual pages from the command line's own help, into docs/man
	$(BIN)/python packaging/man_pages.py docs/man

docs: $(SETUP_STAMP) ## the documentation as a site with a search, which opens without a server: build/docs/index.html
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html docs build/docs
	@echo 'build/docs/index.html'

io-lab: $(SETUP_STAMP) ## the I/O lab: throughput over buffer sizes, static against dynamic, three figures
	@mkdir -p build/io-lab
	@$(BIN)/etude io lab build/io-lab -o build/io-lab/$$(date -u +%Y%m%dT%H%M%S) --format png

picture: $(SETUP_STAMP) ## the README's picture and transcript, from a real run on this machine
	@mkdir -p $(DEMO) && cd $(DEMO) && rm -rf sums && PATH="$(CURDIR)/$(BIN):$$PATH" python ../../packaging/terminal_picture.py \
		../../docs/images/bench.svg 100 -- \
		etude bench --precision 5% -o sums -n loop 'python3 -c "for i in range(10**7): pass"' -n sum 'python3 -c "sum(range(10**7))"'

wheel: $(REQUIREMENTS_STAMP) ## one wheel with all programs, into dist
	@rm -rf dist build/bdist.* build/lib build/lib.* build/scripts-*
	$(BIN)/python -m build --wheel --no-isolation --outdir dist
	$(BIN)/python packaging/check_wheel.py dist/*.whl

deb: wheel ## a Debian package of the wheel, of Debian 12, 13 or Ubuntu 24.04: RELEASE=bookworm, trixie, noble (as root)
	$(BIN)/python packaging/deb.py dist/*.whl $(RELEASE)

release: $(REQUIREMENTS_STAMP) ## archives of the tagged commit in dist, checked, with SHA256SUMS signed by KEY=NAME; uploads nothing (as root)
	$(BIN)/python packaging/release.py --key '$(KEY)'

constraints: ## pin the newest versions that fit pyproject.toml, in constraints.txt and packaging/release-tools.txt
	@packaging/check-tools.sh $(PYTHON) $(CARGO)
	$(PYTHON) packaging/pin_versions.py

advisories: $(REQUIREMENTS_STAMP) ## look the locked packages up in ADVISORY_DATABASES (checkouts of RustSec's and PyPA's)
	$(BIN)/python packaging/check_advisories.py $(ADVISORY_DATABASES)

clean: ## remove all that was made here, but results
	rm -rf $(VENV) build dist target src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

# --- parts of the above -----------------------------------------------------------------------

# 5: something for it is missing here, which is said, and its tests are skipped.
guest-where-possible: wheel
	$(BIN)/python packaging/guest/build.py dist/*.whl || (($$? == 5))

test-packages:
	@packaging/part.sh 'Debian packages' 90 packaging/install-debian-packages.sh

# Programs in .venv name the place where it was made: in a clone that was moved or copied it would run another clone's.
MADE_AT := $(strip $(file < $(VENV)/place))
ifneq ($(MADE_AT),)
ifneq ($(MADE_AT),$(strip $(CURDIR)))
$(REQUIREMENTS_STAMP): moved
endif
endif

# What was installed for another Python, which has since been upgraded, this one does not find.
IT_IS := $(notdir $(shell readlink -f $(BIN)/python))
ifneq ($(filter python3.%,$(IT_IS)),)
ifeq ($(wildcard $(VENV)/lib/$(IT_IS)),)
$(REQUIREMENTS_STAMP): moved
endif
endif

moved:
	@echo 'making .venv anew, which was made for $(MADE_AT), $(notdir $(wildcard $(VENV)/lib/python3.*))'
	@rm -rf $(VENV)

# Python compiles what it imports when it does, which is a small part of all that is installed.
# Requirements first and alone: then an edit of Rust costs cargo and a second of pip.
# A stamp is as old as the beginning of the work: what is edited meanwhile is newer than it.
$(REQUIREMENTS_STAMP): pyproject.toml constraints.txt
	@packaging/check-tools.sh $(PYTHON) $(CARGO)
	@$(BIN)/python -c 'import pip' 2>/dev/null || { echo 'making .venv'; $(PYTHON) -m venv --clear $(VENV); }
	@echo "$(CURDIR)" > $(VENV)/place
	@touch $@.new
	@echo 'installing the requirements of pyproject.toml, at the versions of constraints.txt'
	@$(PIP) install --quiet --no-compile --disable-pip-version-check --no-deps --require-hashes -r constraints.txt || { \
		echo 'make: pip could not install the requirements; where pypi.org cannot be reached, name a mirror (PIP_INDEX_URL=URL make setup)' >&2; exit 1; }
	@mv $@.new $@

$(SETUP_STAMP): $(REQUIREMENTS_STAMP) $(RUST_SOURCES) setup.py
	@packaging/check-tools.sh $(PYTHON) $(CARGO)
	@echo 'building the engine in release and installing Étude editable: some minutes the first time'
	@touch $@.new
	@$(PIP) install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@mv $@.new $@
	@echo 'Étude is in .venv: . .venv/bin/activate'

# Text that every machine has: the Python library's own sources, a few MB of them in a fixed order.
$(DEMO)/text: | $(SETUP_STAMP)
	@mkdir -p $(@D)
	@$(BIN)/python packaging/demo_text.py > $@
