# Every target sets up what it needs: a Rust toolchain and Python 3.10 or newer are enough to start.
# `make help` lists the targets of this file, `make help-all` also those of the files that it includes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DOCS_VENV := .venv-docs
LINT_TOOLS := target/lint
SCHEMAS := PYTHONPATH=$(LINT_TOOLS) $(BIN)/python -m check_jsonschema --quiet --builtin-schema vendor.

# One interpreter for maturin, clippy and the tests, so that no build invalidates another.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
# Python compiles what is imported, a tenth of the packages, and keeps it.
export PIP_COMPILE := 0
# maturin sets it; without it, cargo and maturin would build PyO3 in turn.
export PYO3_BUILD_EXTENSION_MODULE := 1
# Without bytecode, each process of the tests would compile every package that it imports.
unexport PYTHONDONTWRITEBYTECODE
# Every run tests the same random examples; another seed gives others.
export PROPTEST_RNG_SEED ?= 1
# Read from pyproject.toml, the only place that names the version.
MATURIN := $(shell sed -n 's/^requires = \["\(maturin[^"]*\)"\]$$/\1/p' pyproject.toml)
# $(call layer,VENV,BELOW): packages that VENV does not have are found in BELOW.
layer = $(1)/bin/python -c 'import site, sys; from pathlib import Path; \
	below = Path(sys.argv[1]).glob("lib/python*/site-packages"); \
	layer = "".join(f"import site; site.addsitedir({str(folder)!r})\n" for folder in below); \
	Path(site.getsitepackages()[0], "below.pth").write_text(layer)' "$(CURDIR)/$(2)"
SPHINX := $(DOCS_VENV)/bin/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env
# Asked for when a recipe runs: the folder does not exist when make reads this file.
SITE = "$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')"
# The module that tests and lints import: of a release build if there is one, else of a quicker build.
MODULE = $(VENV)/$(if $(wildcard $(VENV)/.built),.built,.developed)
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name Cargo.toml)
# The engine has tests with other features.
CRATES := --workspace --exclude abi-header --exclude cartwheel-engine
# $(call targets,FILES): the documented targets of makefiles.
targets = @sed -n 's/^\([a-z-]*\):.*\#\# /\1\t/p' $(1) | while IFS="$$(printf '\t')" read -r target text; do \
	printf '  make %-15s %s\n' "$$target" "$$text"; done

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help help-all setup build demo test test-rust test-python parity lint lint-rust lint-python lint-workflows fmt docs docs-rust docs-serve site linkcheck bench compare wheel

include tests/Makefile benchmarks/Makefile release/Makefile

help: ## list these targets
	$(call targets,Makefile)

help-all: ## list all targets, also those of tests/, benchmarks/ and release/
	$(call targets,$(MAKEFILE_LIST))

setup: $(VENV)/.maturin ## create .venv with the build tool in it

build: $(VENV)/.built ## make a release build in .venv, with everything that tests and benchmarks import

demo: build ## run the examples, then a short benchmark of this machine
	@echo '==> examples/quickstart.py'
	@$(BIN)/python examples/quickstart.py
	@echo '==> examples/autoreset_modes.py'
	@$(BIN)/python examples/autoreset_modes.py
	@echo '==> python -m cartwheel bench'
	@$(BIN)/python -m cartwheel bench --num-envs 8 32 --seconds 1 --rounds 3

test: ## run what one runs before a commit: lints, types, and the tests of Rust and Python
	@echo '==> Python tests, lints, types and Rust tests, four at a time; each prints when it has ended'
	@$(MAKE) --no-print-directory --jobs=4 --output-sync=target \
		FIRST='$(if $(wildcard $(VENV)/.built),,target/debug/.compiled)' test-python lint test-rust
	@echo '==> every check passed; pytest says above what it skipped and why; `make test-merge` runs what gates a merge'

# `make test` builds the module first, for pytest takes longest. A cargo that waits for that one would keep one of the four
# jobs, with which that one compiles several crates at a time.
lint-rust test-rust: | $(FIRST)

# The crates are as in the module and built once for both, but for the engine: its failpoints would be in all of them.
# The binding has no tests. It is named so that the crates of others have the features that they have in the module.
# rustdoc would warn that it cannot use the jobs that these variables name.
test-rust: setup ## run the tests of the crates, with injected faults
	@echo '==> cargo test'
	@unset MAKEFLAGS MFLAGS; cargo test --locked --profile dev $(CRATES)
	@echo '==> cargo test, the engine with failpoints'
	@unset MAKEFLAGS MFLAGS; cargo test --locked -p cartwheel-engine -p cartwheel-python --features cartwheel-engine/failpoints

test-python: $(MODULE) ## run the Python tests, with each value of each parameter; threads and processes take turns
	@$(if $(wildcard $(VENV)/.built),cargo build --locked --quiet -p test-plugin)
	@echo '==> pytest, each value of each parameter'
	@$(BIN)/python -m tests

parity: build ## compare every native environment with Gymnasium's and count the values that differ
	@$(BIN)/python -m tools.parity

lint: lint-rust lint-python $(VENV)/.stubtest lint-workflows ## check formatting, lints, types and workflows; changes nothing

lint-rust: setup
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 \
		|| rustup component add rustfmt clippy
	@echo '==> cargo fmt'
	@cargo fmt --all --check
	@echo '==> cargo clippy'
	@cargo clippy --locked --workspace --exclude abi-header --all-targets --features cartwheel-engine/failpoints -- -D warnings

lint-python: $(VENV)/.packages
	@echo '==> ruff'
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@echo '==> mypy'
	@$(BIN)/python -m mypy

lint-workflows: $(LINT_TOOLS)/.installed
	@echo '==> check-jsonschema and zizmor, .github and CITATION.cff'
	@$(SCHEMAS)github-workflows .github/workflows/*.yml
	@$(SCHEMAS)github-actions .github/actions/*/action.yml
	@$(SCHEMAS)github-issue-forms .github/ISSUE_TEMPLATE/[0-9]*.yml
	@$(SCHEMAS)github-issue-config .github/ISSUE_TEMPLATE/config.yml
	@$(SCHEMAS)dependabot .github/dependabot.yml
	@$(SCHEMAS)citation-file-format CITATION.cff
	@$(LINT_TOOLS)/bin/zizmor --offline --quiet --no-progress .github

fmt: $(VENV)/.packages ## format the code and apply safe fixes
	@cargo fmt --all
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

docs: docs-rust $(DOCS_VENV)/.installed ## build the site in docs/_build/html, without the output of its tutorials: checks links and names; warnings are errors
	@$(SPHINX) -D nb_execution_mode=off docs docs/_build/html
	@echo '==> docs/_build/html/index.html'

site: build docs-rust $(DOCS_VENV)/.installed ## build the site as it is published: runs its tutorials, too
	@$(call layer,$(DOCS_VENV),$(VENV))
	@$(SPHINX) docs docs/_build/html
	@echo '==> docs/_build/html/index.html'

docs-serve: docs ## build the site and show it on http://127.0.0.1:8000
	@$(DOCS_VENV)/bin/python -m http.server --bind 127.0.0.1 --directory docs/_build/html 8000

linkcheck: docs-rust $(DOCS_VENV)/.installed ## ask for every page of another host that the documentation links to
	@$(SPHINX) -b linkcheck -D nb_execution_mode=off docs docs/_build/linkcheck

# The reference of the crates for authors, which the site contains. First, a check of the links of all crates.
docs-rust:
	@echo '==> cargo doc'
	@RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --quiet --document-private-items
	@RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --quiet --target-dir target/site -p cartwheel -p cartwheel-core -p cartwheel-abi
	@rm -rf docs/_build/extra && mkdir -p docs/_build/extra && cp -r target/site/doc docs/_build/extra/rust

bench: build ## measure every claim of benchmarks/, then draw the chart of this machine
	@for claim in $(patsubst %.py,%,$(wildcard $(addprefix benchmarks/,process/*.py native/*.py rollouts/*.py wrappers/*.py))); do \
		echo "==> $$claim.py"; $(BIN)/python -m "$$(echo $$claim | tr / .)" || exit 1; done
	@echo '==> python -m cartwheel bench'
	@$(BIN)/python -m cartwheel bench --json target/bench.json --plot target/bench.png

BASE ?= HEAD~1

compare: build ## count the instructions of a step at the commit BASE (HEAD~1) and at HEAD; needs valgrind
	@$(BIN)/python -m tools.compare $(BASE)

wheel: $(RELEASE_VENV)/.installed ## build the release wheel of this machine into dist/, check it and try it in an empty environment
	@rm -rf dist
	@$(RELEASE_VENV)/bin/python -m release.wheels --here --abis cp310-abi3

# Stamp files: a step that is done is not repeated.

$(VENV)/.stubtest: $(MODULE) python/cartwheel/_cartwheel.pyi
	@echo '==> stubtest'
	@printf '[mypy]\n[mypy-cartwheel]\nfollow_imports = skip\n' \
		| $(BIN)/python -m mypy.stubtest --mypy-config-file /dev/stdin cartwheel._cartwheel # mypy checks the package
	@touch $@

# The tools that build the site. The layer comes first, so that what $(VENV) has, if there is one, is not installed again.
$(DOCS_VENV)/.installed: docs/requirements.txt constraints.txt
	@echo '==> virtual environment in $(DOCS_VENV)'
	@test -x $(DOCS_VENV)/bin/pip || $(PYTHON) -m venv $(DOCS_VENV)
	@$(call layer,$(DOCS_VENV),$(VENV))
	@$(DOCS_VENV)/bin/python -m pip install --quiet -r $<
	@touch $@

# The tools that check workflows. pip's constraints are for $(VENV); these packages have pins of their own. They are in
# a folder, since a virtual environment begins with a pip, which takes four seconds of a processor.
$(LINT_TOOLS)/.installed: tests/requirements/lint.txt | $(VENV)/.maturin
	@echo '==> packages in $(LINT_TOOLS)'
	@PIP_CONSTRAINT= $(BIN)/python -m pip install --quiet --upgrade --target $(LINT_TOOLS) -r $<
	@touch $@

$(VENV)/.maturin: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo 'cartwheel needs Python 3.10 or newer: make PYTHON=/path/to/python3 …' >&2; exit 1; }
	@command -v cargo >/dev/null || { echo 'cartwheel needs a Rust toolchain: no cargo on PATH' >&2; exit 1; }
	@echo '==> virtual environment in $(VENV)'
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet '$(MATURIN)'
	@touch $@

# The packages of $(VENV), where cartwheel is found in python/.
$(VENV)/.packages: $(VENV)/.maturin pyproject.toml constraints.txt
	@echo '==> packages in $(VENV)'
	@$(BIN)/python -c 'from pip._vendor import tomli; \
		project = tomli.load(open("pyproject.toml", "rb"))["project"]; extras = project["optional-dependencies"]; \
		print(*project["dependencies"], *extras["test"], *extras["bench"], sep="\n")' > $(VENV)/requirements.txt
	@$(BIN)/python -m pip install --quiet -r $(VENV)/requirements.txt
	@echo '$(CURDIR)/python' > $(SITE)/cartwheel.pth
	@touch $@

# The first build of `make test`, while packages are installed: its longest stage, pytest, waits for this one. The module
# itself is one crate, which one processor compiles at last; the other one compiles the tests of `make test-rust` then.
target/debug/.compiled: $(VENV)/.maturin $(RUST_SOURCES) $(shell find tests/native/plugins/rust -name '*.rs' -o -name Cargo.toml)
	@echo '==> cargo build, the module, the plugin of the tests, and the tests of the crates'
	@cargo build --locked --quiet $(CRATES) --lib --tests --examples
	@touch $@

$(VENV)/.developed: target/debug/.compiled $(VENV)/.packages
	@rm -f python/cartwheel/_cartwheel*.so # one of another ABI would be imported instead
	@cp target/debug/lib_cartwheel.so python/cartwheel/_cartwheel.abi3.so
	@rm -rf $(SITE)/cartwheel-*.dist-info
	@$(BIN)/maturin pep517 write-dist-info --metadata-directory $(SITE) --interpreter "$(PYO3_PYTHON)" >/dev/null
	@touch $@

$(VENV)/.built: $(VENV)/.packages $(RUST_SOURCES)
	@echo '==> maturin develop --release'
	@rm -rf python/cartwheel/_cartwheel*.so $(SITE)/cartwheel-*.dist-info $(VENV)/.developed
	@$(BIN)/maturin develop --release --locked --extras test,bench,envpool # EnvPool for slow tests and benchmarks
	@touch $@
