# Every target sets up what it needs: a Rust toolchain and Python 3.10 or newer are enough to start.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH_VENV := .venv-torch
RAY_VENV := .venv-ray
TRAINERS := sample-factory pufferlib lerobot
ZOO_VENV := .venv-zoo
# The versions of Gymnasium that the tests run beside: the oldest that pyproject.toml allows (RLlib needs it) to the
# newest. Each has an environment of its own.
GYMNASIUMS := 1.2.2 1.3.0 1.4.0
GYM_VENV := .venv-gym-
OLDEST_GYM_VENV := $(GYM_VENV)$(firstword $(GYMNASIUMS))
# The same for MuJoCo.
MUJOCOS := 3.2.0 3.3.7 3.10.0 3.17.0 4.0.0
MUJOCO_VENV := .venv-mujoco-
RELEASE_VENV := .venv-release
DOCS_VENV := .venv-docs
LINT_VENV := .venv-lint
SCHEMAS := $(LINT_VENV)/bin/check-jsonschema --quiet --builtin-schema vendor.
EXAMPLES := target/examples

# One interpreter for maturin, clippy and the tests, so that no build invalidates another.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
# Tracebacks name lines; all debug information makes a fresh build a fifth slower.
export CARGO_PROFILE_DEV_DEBUG := line-tables-only
# Every run tests the same random examples; another seed gives others.
export PROPTEST_RNG_SEED ?= 1
# Read from pyproject.toml, the only place that names the version.
MATURIN := $(shell sed -n 's/^requires = \["\(maturin[^"]*\)"\]$$/\1/p' pyproject.toml)
# $(call layer,VENV,BELOW): packages that VENV does not have are found in BELOW.
layer = $(1)/bin/python -c 'import site, sys; from pathlib import Path; \
	below = Path(sys.argv[1]).glob("lib/python*/site-packages"); \
	layer = "".join(f"import site; site.addsitedir({str(folder)!r})\n" for folder in below); \
	Path(site.getsitepackages()[0], "below.pth").write_text(layer)' "$(CURDIR)/$(2)"
C_FLAGS := -O2 -Wall -Wextra -Werror -fPIC -shared -I rust/cartwheel-abi/include
# With an explicit --target, build scripts and macros are built without the sanitizer.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
# Sanitizers are unstable flags, which RUSTC_BOOTSTRAP permits on the stable compiler. With rustix_use_libc, mmap
# and munmap go through libc, where the sanitizers see them.
SANITIZED = RUSTC_BOOTSTRAP=1 RUSTFLAGS='-Zsanitizer=$(1) --cfg rustix_use_libc' cargo
UNDER_ASAN = LD_PRELOAD="$$(gcc -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0 \
	PYTHONPATH=target/asan/python $(BIN)/python
PORTABLE = PYTHONPATH=$(CURDIR)/target/portable/python $(BIN)/python
MACS := aarch64-apple-darwin x86_64-apple-darwin
MEMORY_TESTS := $(addprefix tests/vector/test_,observations_are_never_overwritten.py rollout_arrays.py \
	rows_in_flight.py calls_for_some_rows.py sent_rows_that_fail.py views_outlive_everything.py)
OLDEST_GYM_TESTS := $(addprefix tests/,internal/test_gymnasium_versions.py vector/test_parity.py native/test_parity.py \
	wrappers/test_beside_gymnasium.py)
RUST_EXAMPLES := examples/rust-env examples/rust-physics
EXAMPLE_SOURCES := $(shell find $(RUST_EXAMPLES) examples/c-env rust/cartwheel-abi/include -type f)
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name Cargo.toml)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help setup build demo test test-full test-portable check-macos test-rust test-examples test-torch test-trainers test-pythons test-oldest matrix matrix-mujoco loom orders sanitize sanitize-core sanitize-python parity soak faults zoo docs docs-serve lint fmt bench charts compare bench-trainers wheel wheels sdist reproduce test-wheels test-extras

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r target text; do \
		printf '  make %-14s %s\n' "$$target" "$$text"; done

setup: $(VENV)/.maturin ## create .venv with the build tool in it

build: $(VENV)/.built ## make a release build in .venv, with everything that tests and benchmarks import

demo: build ## run the examples, then a short benchmark of this machine
	@echo '==> examples/quickstart.py'
	@$(BIN)/python examples/quickstart.py
	@echo '==> examples/autoreset_modes.py'
	@$(BIN)/python examples/autoreset_modes.py
	@echo '==> python -m cartwheel bench'
	@$(BIN)/python -m cartwheel bench --num-envs 8 32 --seconds 1 --rounds 3

test: lint test-rust test-examples $(OLDEST_GYM_VENV)/.installed ## run every check: lint, Rust tests, examples, Python tests
	@echo '==> the plugin of the tests'
	@cargo build --locked --quiet -p test-plugin
	@echo '==> pytest, each value of each parameter; `make test-full` has every combination'
	@$(BIN)/python -m pytest -n 2 --dist loadfile
	@echo '==> pytest, a part of the tests beside the oldest Gymnasium'
	@$(OLDEST_GYM_VENV)/bin/python -m pytest -n 2 --dist loadfile $(OLDEST_GYM_TESTS)
	@echo '==> every check passed; pytest says above what it skipped and why; `make test-torch` runs what needs torch'

test-full: build ## run all Python tests: every combination of parameters, and slow ones; `make test` has each value once
	@cargo build --locked --quiet -p test-plugin
	@$(BIN)/python -m pytest --full -n 2 --dist loadfile

test-portable: build check-macos ## run the tests of the core and of Python on a build that uses nothing of Linux, as on macOS
	@echo '==> cargo clippy and test, the feature portable'
	@cargo clippy -p cartwheel-engine -p cartwheel-python --all-targets --features portable -- -D warnings
	@cargo test -p cartwheel-engine --features portable
	@cargo test -p cartwheel-engine --features portable,failpoints --test failpoints
	@echo '==> the module, with the feature portable'
	@cargo build --locked --quiet -p test-plugin
	@cargo build --locked -p cartwheel-python --features portable --target-dir target/portable
	@rm -rf target/portable/python && cp -r python target/portable/python
	@rm -f target/portable/python/cartwheel/_cartwheel*.so
	@cp target/portable/debug/lib_cartwheel.so target/portable/python/cartwheel/_cartwheel.abi3.so
	@$(PORTABLE) -c 'import cartwheel._cartwheel as m; assert m.PLATFORM == "portable" and "target/portable/python" in m.__file__'
	@echo '==> pytest, the portable build'
	@$(PORTABLE) -m pytest --full -n 2 --dist loadfile

check-macos: setup ## compile the crates for macOS, without linking them
	@for target in $(MACS); do \
		echo "==> cargo clippy, $$target"; \
		rustup target add $$target >/dev/null 2>&1 || { echo "make check-macos needs rustup and its target $$target" >&2; exit 1; }; \
		PYO3_NO_PYTHON=1 PYO3_CROSS_PYTHON_VERSION=3.10 cargo clippy --target $$target -p cartwheel-engine -p cartwheel-kernels -p cartwheel-envs \
			-p cartwheel-mujoco \
			-p cartwheel-python -- -D warnings || exit 1; done

test-torch: build $(TORCH_VENV)/.installed $(RAY_VENV)/.installed ## run the tests that need torch, a trainer or Ray, in separate environments; some check that the examples learn
	@echo '==> pytest, the tests that need torch or a trainer'
	@$(TORCH_VENV)/bin/python -m pytest --full -m torch -n 2
	@echo '==> pytest, the tests that need Ray'
	@$(RAY_VENV)/bin/python -m pytest --full -m ray

PYTHONS ?= 3.10 3.11 3.12 3.13 3.14 3.14t
TESTS ?= tests

test-pythons: build $(RELEASE_VENV)/.installed ## run TESTS (tests) on each of PYTHONS (3.10 to 3.14, and 3.14t without a GIL), with the wheel, and print a table; builds Pythons that are not on PATH
	@$(RELEASE_VENV)/bin/python -m release.wheels --here --untried --unprofiled
	@$(BIN)/python -m release.python_matrix --tests $(TESTS) -- $(PYTHONS)

test-oldest: build $(RELEASE_VENV)/.installed ## run the chosen tests on the oldest Python, beside the oldest packages that pyproject.toml allows
	@$(RELEASE_VENV)/bin/python -m release.wheels --here --untried --unprofiled
	@PIP_CONSTRAINT= $(BIN)/python -m release.python_matrix --oldest $(firstword $(PYTHONS))

matrix: build $(GYMNASIUMS:%=$(GYM_VENV)%/.installed) ## run the tests that concern Gymnasium beside each version of it that is supported
	@$(BIN)/python -m tools.matrix $(GYMNASIUMS)

matrix-mujoco: build $(MUJOCOS:%=$(MUJOCO_VENV)%/.installed) ## run the tests of native MuJoCo environments beside old and new versions of MuJoCo
	@$(BIN)/python -m tools.matrix --package mujoco $(MUJOCOS)

test-trainers: build $(TRAINERS:%=.venv-%/.installed) ## run the tests with trainers whose requirements contradict ours, in an environment for each
	@for trainer in $(TRAINERS); do \
		echo "==> pytest, $$trainer"; \
		.venv-$$trainer/bin/python -m pytest -m trainers tests/adapters/trainers/test_$$(echo $$trainer | tr - _).py \
			|| exit 1; done

test-rust: setup ## run the tests of the core, also with injected faults, then test every interleaving of its wake-ups with loom
	@echo '==> cargo test'
	@cargo test
	@echo '==> cargo test with failpoints'
	@cargo test -p cartwheel-engine --features failpoints --test failpoints
	@echo '==> cargo test under loom'
	@RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/loom cargo test -p cartwheel-engine --profile loom --lib --test loom

loom: setup ## as in test-rust, with a pre-emption more around every death of a worker
	@LOOM_MAX_PREEMPTIONS=3 RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/loom cargo test -p cartwheel-engine --profile loom --lib --test loom

orders: setup ## weaken each memory order of the protocols in a copy of the sources, and require that loom notices
	@LOOM_MAX_PREEMPTIONS=2 $(BIN)/python -m tools.weakened_orders

test-examples: $(EXAMPLES)/.installed ## build the environments of examples/ as wheels and a C library, install and test them
	@echo '==> cargo fmt, clippy and test, the examples'
	@export CARGO_TARGET_DIR=$(EXAMPLES) PYO3_BUILD_EXTENSION_MODULE=1; for crate in $(RUST_EXAMPLES) examples/pure-rust docs/tutorials/docking; do \
		cargo fmt --check --manifest-path $$crate/Cargo.toml \
			&& cargo clippy --quiet --all-targets --manifest-path $$crate/Cargo.toml -- -D warnings \
			&& cargo test --quiet --manifest-path $$crate/Cargo.toml || exit 1; done
	@echo '==> cargo run, examples/pure-rust'
	@cargo run --quiet --target-dir $(EXAMPLES) --manifest-path examples/pure-rust/Cargo.toml
	@echo '==> pytest, the examples'
	@$(EXAMPLES)/venv/bin/python -m pytest examples/tests

sanitize: sanitize-core sanitize-python ## run the core and a part of the Python tests under AddressSanitizer and ThreadSanitizer

sanitize-core: setup
	@echo '==> cargo test under AddressSanitizer'
	@$(call SANITIZED,address) test -p cartwheel-engine -p cartwheel-kernels -p cartwheel --features cartwheel/engine --tests --target $(HOST) --target-dir target/asan
	@echo '==> cargo test under ThreadSanitizer, with an instrumented std'
	@test -d "$$(rustc --print sysroot)/lib/rustlib/src/rust/library" || rustup component add rust-src
	@$(call SANITIZED,thread) test -Zbuild-std -p cartwheel-engine -p cartwheel-kernels -p cartwheel --features cartwheel/engine --tests --target $(HOST) --target-dir target/tsan

sanitize-python: build
	@echo '==> pytest under AddressSanitizer'
	@command -v gcc >/dev/null && test -e "$$(gcc -print-file-name=libasan.so)" \
		|| { echo 'make sanitize needs the runtime of AddressSanitizer: gcc is not on PATH, or has no libasan.so' >&2; \
			exit 1; }
	@$(call SANITIZED,address) build -p cartwheel-python --target $(HOST) --target-dir target/asan
	@rm -rf target/asan/python && cp -r python target/asan/python
	@rm -f target/asan/python/cartwheel/_cartwheel*.so
	@cp target/asan/$(HOST)/debug/lib_cartwheel.so target/asan/python/cartwheel/_cartwheel.so
	@$(UNDER_ASAN) -c 'import cartwheel._cartwheel as m; assert "target/asan/python" in m.__file__, m.__file__'
	@$(UNDER_ASAN) -m pytest --full -p no:faulthandler --timeout=300 $(MEMORY_TESTS)

parity: build ## compare every native environment with Gymnasium's and count the values that differ
	@$(BIN)/python -m tools.parity

MINUTES ?= 10

soak: build ## run random operations with random kills for MINUTES (10) and compare the results with a model; collectors for as long
	@$(BIN)/python -m tools.soak --minutes $(MINUTES)
	@$(BIN)/python -m tools.soak_collecting --steps 1000000
	@$(BIN)/python -m tools.soak_collecting --minutes $(MINUTES)

faults: build ## cause faults in every executor and in Gymnasium, and write the table of docs/faults.md
	@$(BIN)/python -m tools.fault_table --write docs/faults.md

zoo: build $(ZOO_VENV)/.installed ## step real environments of other packages beside Gymnasium, and write the table of docs/environments.md
	@echo '==> pytest, real environments'
	@$(ZOO_VENV)/bin/python -m pytest --full -m zoo
	@echo '==> the table of docs/environments.md'
	@$(ZOO_VENV)/bin/python -m tests.zoo.table --write docs/environments.md

docs: build $(DOCS_VENV)/.installed ## build the site of docs/ in docs/_build/html: runs its tutorials, checks its links; warnings are errors
	@$(DOCS_VENV)/bin/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env docs docs/_build/html
	@echo '==> docs/_build/html/index.html'

docs-serve: docs ## build the site and show it on http://127.0.0.1:8000
	@$(DOCS_VENV)/bin/python -m http.server --bind 127.0.0.1 --directory docs/_build/html 8000

lint: build $(LINT_VENV)/.installed ## check formatting, lints, types and workflows; changes nothing
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 \
		|| rustup component add rustfmt clippy
	@echo '==> cargo fmt'
	@cargo fmt --all --check
	@echo '==> cargo clippy'
	@cargo clippy --workspace --all-targets -- -D warnings
	@cargo clippy -p cartwheel-engine --all-targets --features failpoints -- -D warnings
	@echo '==> ruff'
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@echo '==> mypy'
	@$(BIN)/python -m mypy
	@echo '==> stubtest'
	@$(BIN)/python -m mypy.stubtest cartwheel._cartwheel
	@echo '==> check-jsonschema and zizmor, .github and CITATION.cff'
	@$(SCHEMAS)github-workflows .github/workflows/*.yml
	@$(SCHEMAS)github-actions .github/actions/*/action.yml
	@$(SCHEMAS)github-issue-forms .github/ISSUE_TEMPLATE/[0-9]*.yml
	@$(SCHEMAS)github-issue-config .github/ISSUE_TEMPLATE/config.yml
	@$(SCHEMAS)dependabot .github/dependabot.yml
	@$(SCHEMAS)citation-file-format CITATION.cff
	@$(LINT_VENV)/bin/zizmor --offline --quiet --no-progress .github

fmt: build ## format the code and apply safe fixes
	@cargo fmt --all
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: build ## measure every claim of benchmarks/, then draw the chart of this machine
	@for claim in $(patsubst %.py,%,$(wildcard $(addprefix benchmarks/,process/*.py native/*.py rollouts/*.py wrappers/*.py))); do \
		echo "==> $$claim.py"; $(BIN)/python -m "$$(echo $$claim | tr / .)" || exit 1; done
	@echo '==> python -m cartwheel bench'
	@$(BIN)/python -m cartwheel bench --json target/bench.json --plot target/bench.png

charts: build .venv-pufferlib/.installed ## draw the charts of docs/speed.md, beside every package that is measured; the machine must be idle
	@.venv-pufferlib/bin/python -m cartwheel bench --rivals envpool --json target/bench.json --plot docs/speed.png
	@.venv-pufferlib/bin/python -m cartwheel bench --scaling --num-envs 1 4 16 64 256 1024 --seconds 5 --json target/charts.json \
		--plot docs/rows-and-workers.png

BASE ?= HEAD~1

compare: build ## count the instructions of a step at the commit BASE (HEAD~1) and at HEAD; needs valgrind
	@$(BIN)/python -m tools.compare $(BASE)

bench-trainers: build $(TORCH_VENV)/.installed $(RAY_VENV)/.installed .venv-pufferlib/.installed $(ZOO_VENV)/.installed ## measure every claim of benchmarks/trainers/
	@for claim in $(TORCH_VENV)/sb3_vec_env $(TORCH_VENV)/torchrl_collector $(TORCH_VENV)/torchrl_pipelined $(TORCH_VENV)/tianshou_and_skrl \
			$(RAY_VENV)/rllib_env_runner $(RAY_VENV)/ray_rollouts .venv-pufferlib/pufferlib_envs; do \
		echo "==> benchmarks/trainers/$${claim#*/}.py"; \
		$${claim%/*}/bin/python -m "benchmarks.trainers.$${claim#*/}" || exit 1; done
	@echo '==> benchmarks/trainers/real_environments.py'
	@PYTHONPATH="$$(echo $(TORCH_VENV)/lib/python*/site-packages)" $(ZOO_VENV)/bin/python -m benchmarks.trainers.real_environments

wheel: $(RELEASE_VENV)/.installed ## build the release wheel of this machine into dist/, check it and try it in an empty environment
	@rm -rf dist
	@$(RELEASE_VENV)/bin/python -m release.wheels --here --abis cp310-abi3

wheels: $(RELEASE_VENV)/.installed ## build the wheels of every machine, check them, and try those that run here
	@rm -rf dist
	@$(RELEASE_VENV)/bin/python -m release.wheels

test-extras: wheel ## install the wheel with each extra in an environment of its own, and use the extra once; 10 GB of downloads
	@$(RELEASE_VENV)/bin/python -m release.extras $(EXTRAS)

sdist: $(RELEASE_VENV)/.installed ## build the sdist into dist/, and install it where there is only a Rust toolchain
	@$(RELEASE_VENV)/bin/python -m release.sdist

reproduce: $(RELEASE_VENV)/.installed ## build the wheel of this machine and the sdist twice, in two clones, and compare the bytes
	@$(RELEASE_VENV)/bin/python -m release.reproduce

test-wheels: $(RELEASE_VENV)/.installed ## run the wheels of dist/ on other C libraries and, under qemu, on ARM; as root, with mmdebstrap
	@$(RELEASE_VENV)/bin/python -m release.in_roots

# Stamp files: a step that is done is not repeated.

# The wheels of cartwheel and of the examples, installed together as their users install them. The examples are built
# with cargo's dev profile, which is quicker to build and checks arithmetic.
$(EXAMPLES)/.installed: $(VENV)/.built $(EXAMPLE_SOURCES)
	@echo '==> maturin build, cartwheel and the examples'
	@rm -rf $(EXAMPLES)/wheels
	@$(BIN)/maturin build --quiet --release --locked --out $(EXAMPLES)/wheels --interpreter "$(PYO3_PYTHON)"
	@for crate in $(RUST_EXAMPLES); do \
		CARGO_TARGET_DIR=$(EXAMPLES) $(BIN)/maturin build --quiet --manifest-path $$crate/Cargo.toml \
			--out $(EXAMPLES)/wheels || exit 1; done
	@echo '==> cc and c++, the example in C'
	@cc -std=c11 $(C_FLAGS) examples/c-env/thermostat.c -o $(EXAMPLES)/thermostat.so -lm
	@if command -v c++ >/dev/null; then c++ -x c++ -std=c++20 $(C_FLAGS) -Wno-missing-field-initializers \
			examples/c-env/thermostat.c -o $(EXAMPLES)/thermostat_cpp.so; \
		else echo 'SKIPPED: there is no c++ on PATH, so examples/c-env is not compiled as C++' >&2; fi
	@echo '==> the wheels in an environment of their own'
	@test -x $(EXAMPLES)/venv/bin/pip || $(PYTHON) -m venv $(EXAMPLES)/venv
	@$(EXAMPLES)/venv/bin/python -m pip install --quiet pytest pytest-timeout $(EXAMPLES)/wheels/*.whl
	@$(EXAMPLES)/venv/bin/python -m pip install --quiet --force-reinstall --no-deps $(EXAMPLES)/wheels/*.whl
	@touch $@

# Everything in $(VENV), plus torch and trainers, which take 6 GB with their dependencies.
$(TORCH_VENV)/.installed: tests/requirements/torch.txt constraints.txt
	@echo '==> virtual environment in $(TORCH_VENV)'
	@test -x $(TORCH_VENV)/bin/pip || $(PYTHON) -m venv $(TORCH_VENV)
	@$(TORCH_VENV)/bin/python -m pip install --quiet -r $<
	@$(call layer,$(TORCH_VENV),$(VENV))
	@touch $@

# Everything in $(TORCH_VENV), plus Ray and the Gymnasium that RLlib needs. Its versions are its own.
$(RAY_VENV)/.installed: tests/requirements/ray.txt $(TORCH_VENV)/.installed
	@echo '==> virtual environment in $(RAY_VENV)'
	@test -x $(RAY_VENV)/bin/pip || $(PYTHON) -m venv $(RAY_VENV)
	@PIP_CONSTRAINT= $(RAY_VENV)/bin/python -m pip install --quiet -r $<
	@$(call layer,$(RAY_VENV),$(TORCH_VENV))
	@touch $@

# Real environments. The layer comes first: what $(VENV) has is not installed again.
$(ZOO_VENV)/.installed: tests/requirements/zoo.txt constraints.txt
	@echo '==> virtual environment in $(ZOO_VENV)'
	@test -x $(ZOO_VENV)/bin/pip || $(PYTHON) -m venv $(ZOO_VENV)
	@$(call layer,$(ZOO_VENV),$(VENV))
	@$(ZOO_VENV)/bin/python -m pip install --quiet -r $<
	@touch $@

# What builds the site. The layer comes first: what $(VENV) has is not installed again.
$(DOCS_VENV)/.installed: docs/requirements.txt constraints.txt
	@echo '==> virtual environment in $(DOCS_VENV)'
	@test -x $(DOCS_VENV)/bin/pip || $(PYTHON) -m venv $(DOCS_VENV)
	@$(call layer,$(DOCS_VENV),$(VENV))
	@$(DOCS_VENV)/bin/python -m pip install --quiet -r $<
	@touch $@

# What builds and checks the packages of a release, for other machines too.
$(RELEASE_VENV)/.installed: release/requirements.txt pyproject.toml constraints.txt
	@$(PYTHON) -c 'import tomllib' 2>/dev/null \
		|| { echo 'the tools of a release need Python 3.11 or newer: make PYTHON=/path/to/python3 …' >&2; exit 1; }
	@echo '==> virtual environment in $(RELEASE_VENV)'
	@test -x $(RELEASE_VENV)/bin/pip || $(PYTHON) -m venv $(RELEASE_VENV)
	@$(RELEASE_VENV)/bin/python -m pip install --quiet '$(MATURIN)' -r $<
	@touch $@

# What checks workflows. pip's constraints are for $(VENV); these packages have pins of their own.
$(LINT_VENV)/.installed: tests/requirements/lint.txt
	@echo '==> virtual environment in $(LINT_VENV)'
	@test -x $(LINT_VENV)/bin/pip || $(PYTHON) -m venv $(LINT_VENV)
	@PIP_CONSTRAINT= $(LINT_VENV)/bin/python -m pip install --quiet -r $<
	@touch $@

# Everything in $(VENV), with another version of Gymnasium. Its extras are those of $(VENV).
$(GYM_VENV)%/.installed: | $(VENV)/.built
	@echo '==> virtual environment in $(GYM_VENV)$*'
	@test -x $(GYM_VENV)$*/bin/pip || $(PYTHON) -m venv $(GYM_VENV)$*
	@PIP_CONSTRAINT= $(GYM_VENV)$*/bin/python -m pip install --quiet --no-deps gymnasium==$*
	@$(call layer,$(GYM_VENV)$*,$(VENV))
	@touch $@

# Everything in $(VENV), with another version of MuJoCo.
$(MUJOCO_VENV)%/.installed: | $(VENV)/.built
	@echo '==> virtual environment in $(MUJOCO_VENV)$*'
	@test -x $(MUJOCO_VENV)$*/bin/pip || $(PYTHON) -m venv $(MUJOCO_VENV)$*
	@PIP_CONSTRAINT= $(MUJOCO_VENV)$*/bin/python -m pip install --quiet --no-deps mujoco==$*
	@$(call layer,$(MUJOCO_VENV)$*,$(VENV))
	@touch $@

# Everything in $(TORCH_VENV), plus a trainer and what it needs beside the packages that are there, whatever versions of
# them it asks for. PufferLib is compiled, without the games in C, for which its setup lacks a name. Some packages bring
# a `tests` of their own, which would hide ours.
.venv-%/.installed: tests/requirements/%.txt $(TORCH_VENV)/.installed
	@echo '==> virtual environment in .venv-$*'
	@test -x .venv-$*/bin/pip || $(PYTHON) -m venv .venv-$*
	@$(call layer,.venv-$*,$(TORCH_VENV))
	@echo 'import builtins; builtins.c_extension_paths = []' > "$$(.venv-$*/bin/python -c 'import site; print(site.getsitepackages()[0])')/sitecustomize.py"
	@PIP_CONSTRAINT= .venv-$*/bin/python -m pip install --quiet wheel 'setuptools<81'
	@PIP_CONSTRAINT= NO_OCEAN=1 .venv-$*/bin/python -m pip install --quiet --no-deps --no-build-isolation -r $<
	@rm -rf .venv-$*/lib/python*/site-packages/tests
	@touch $@

$(VENV)/.maturin: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo 'cartwheel needs Python 3.10 or newer: make PYTHON=/path/to/python3 …' >&2; exit 1; }
	@command -v cargo >/dev/null || { echo 'cartwheel needs a Rust toolchain: no cargo on PATH' >&2; exit 1; }
	@echo '==> virtual environment in $(VENV)'
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet '$(MATURIN)'
	@touch $@

$(VENV)/.built: $(VENV)/.maturin $(RUST_SOURCES)
	@echo '==> maturin develop --release'
	@rm -f python/cartwheel/_cartwheel*.so # one of another ABI would be imported instead
	@$(BIN)/maturin develop --release --locked --extras test,bench
	@touch $@
