# Two commands do all the set-up: `make run` and `make test`. Any Python 3.11+ with pip will do: make PYTHON=python3.12 test
# What `make help` prints of a target stands after `##` behind its name.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH_VENV := .venv-torch
HTA_VENV := .venv-hta

.DEFAULT_GOAL := help
.PHONY: help run test test-analysis test-pmu test-gpu test-packages test-image fuzz soak lint bench demo docs lock wheel deb rpm onefile sbom clean torch

help:
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z-]*\)\( [a-z-]*\)*:.*## \(.*\)/\1\2\t\3/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r names what; do \
		printf '    %-14s %s\n' "$$names" "$$what"; done
	@echo "PYTHON=python3.12 behind it chooses the interpreter (3.11 or newer); FLAGS='--enable_gpu_monitor ...' is for the daemon of \`make run\`."

run: $(VENV)/.run-ready ## set up .venv, then run the daemon in this terminal until Ctrl-C
	@echo
	@echo "dynolog runs in this terminal (Ctrl-C stops it). In another one:"
	@echo "    $(BIN)/dyno status --verbose      is it well, and what is missing here?"
	@echo "    $(BIN)/dyno watch                 the machine, every two seconds"
	@echo "    KINETO_USE_DAEMON=1 python your_training.py &"
	@echo "    $(BIN)/dyno ps                    who can be traced"
	@echo "    $(BIN)/dyno gputrace --log-file /tmp/trace.json"
	@echo
	@exec $(BIN)/dynolog --enable_ipc_monitor --reporting_interval_s=1 --nouse_JSON $(FLAGS)

test: lint torch ## all checks and tests, those on a real PyTorch included (20 minutes)
	$(BIN)/pytest -q

# Real hardware counters, on an emulated ARM machine: needs qemu-system-arm; about a minute, and 70 MB of Debian packages.
test-pmu: $(VENV)/.ready ## hardware counters on an emulated ARM machine
	$(BIN)/python -m pytest -q tests/emulated/machine_checks.py

# The NVML backend against nvidia-smi: needs a machine with an NVIDIA GPU; says so, with exit code 3, where there is none.
test-gpu: $(VENV)/.ready ## GPU values against nvidia-smi; needs an NVIDIA GPU
	$(BIN)/python tools/gpu_check.py

# The packages on a real systemd: needs root, debootstrap, lintian, rpm and rpmlint; three minutes.
test-packages: $(VENV)/.ready ## the packages on a real systemd; needs root
	$(BIN)/python -m pytest -q tests/system/package_checks.py

# The container image on a real engine: needs root, debootstrap, podman and runc; two minutes.
test-image: $(VENV)/.ready ## the container image on a real engine; needs root
	$(BIN)/python -m pytest -q tests/system/image_checks.py

# Answers against the public HolisticTraceAnalysis: 500 MB, installed once; then half a minute.
test-analysis: $(VENV)/.ready ## answers against HolisticTraceAnalysis; 500 MB to fetch
	@PYTHON="$(PYTHON)" tools/make_hta_venv.sh $(HTA_VENV)
	$(BIN)/python -m pytest -q tests/oracles/analysis_checks.py

# A few thousand inputs to everything that reads bytes from outside, guided by coverage: half a minute. See docs/soak.md.
fuzz: $(VENV)/.ready ## everything that reads bytes from outside, half a minute
	$(BIN)/python -m fuzz.run --inputs 120000

# Ten million inputs, then every fault for a minute under full load and an hour of load alone: two hours and a half on two quiet cores; root.
soak: $(VENV)/.ready ## ten million inputs, then every fault under load; root, two hours and a half
	$(BIN)/python -m fuzz.run --inputs 10000000 --seed $$(date +%s)
	$(BIN)/python -m soak.run --minutes 90 --strict

lint: $(VENV)/.ready ## format, lint, types and imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Tests on real PyTorch skip, loudly, where it cannot be had.
torch: $(VENV)/.ready ## a CPU build of PyTorch for the tests, in .venv-torch
	@PYTHON="$(PYTHON)" tools/make_torch_venv.sh $(TORCH_VENV) || echo "PyTorch is not to be had here: its tests will be skipped" >&2

bench: $(VENV)/.ready ## what it costs, measured into docs/benchmarks.md
	$(BIN)/python bench/run.py

demo: $(VENV)/.run-ready ## the whole story on this machine: two ranks on a CPU PyTorch, traced into demo-out/
	@PYTHON="$(PYTHON)" tools/make_torch_venv.sh $(TORCH_VENV)
	@$(BIN)/python demo/demo.py $(TORCH_VENV)/bin/python

# docs/flags.md, docs/metrics.md and dashboards/grafana.json from the code; a test checks that they are current.
docs: $(VENV)/.ready ## the generated pages anew
	$(BIN)/python tools/make_docs.py
	$(BIN)/python -m tools.make_dashboard

# What the Debian and RPM packages carry: everything but gRPC and Dask.
PACKAGED := analysis completion gpu http k8s otlp pods prometheus remote-write tables tpu zstd

# New versions of what the lock files hold.
LOCK_FLAGS := --quiet --upgrade --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links --no-header --no-annotate
lock: $(VENV)/.ready ## new versions in the lock files
	$(BIN)/python -m pip install --quiet pip-tools
	$(BIN)/pip-compile $(LOCK_FLAGS) --extra analysis --extra tables --extra completion --output-file requirements.lock pyproject.toml
	$(BIN)/pip-compile $(LOCK_FLAGS) --extra all --extra dev --output-file requirements-dev.lock pyproject.toml
	$(BIN)/pip-compile $(LOCK_FLAGS) $(PACKAGED:%=--extra %) --output-file packaging/requirements.lock pyproject.toml

wheel: $(VENV)/.ready ## a wheel in dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

# Packages for x86-64 and arm64 in dist/. The wheels of all Pythons are fetched once into build/.
deb rpm: $(VENV)/.ready ## packages for x86-64 and arm64 in dist/
	$(BIN)/python -m tools.build_packages $@

# One file for this machine that any Python 3.11 to 3.14 runs: dist/dynolog-VERSION-MACHINE.pyz.
onefile: $(VENV)/.ready ## one file that any Python 3.11 to 3.14 runs, in dist/
	$(BIN)/python -m tools.build_onefile

# What is in the packages, as CycloneDX: dist/sbom.cdx.json.
sbom: $(VENV)/.ready ## what is in the packages, as CycloneDX
	$(BIN)/python -m tools.make_sbom

clean: ## remove what make has made
	rm -rf $(VENV) $(TORCH_VENV) $(HTA_VENV) build dist demo-out bench-out fuzz-out .mypy_cache .pytest_cache .ruff_cache .hypothesis

# What running needs, and what everything else needs beside it.
$(VENV)/.run-ready: pyproject.toml requirements.lock tools/make_venv.sh
	@echo "setting up $(VENV) (once)" >&2
	@PYTHON="$(PYTHON)" tools/make_venv.sh $(VENV) requirements.lock
	@touch $@

$(VENV)/.ready: pyproject.toml requirements-dev.lock tools/make_venv.sh
	@echo "setting up $(VENV) (once)" >&2
	@PYTHON="$(PYTHON)" tools/make_venv.sh $(VENV) requirements-dev.lock
	@touch $@
