# Two commands for a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test lint sweep crash audit golden bench clean

demo: $(VENV)/.run-ready ## Set up and run the main job on real data into demo-out/
	$(BIN)/retrodp demo --out demo-out

test: $(VENV)/.test-ready ## Set up and pass the tests
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.test-ready ## Style, types and the laws of the architecture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

sweep: $(VENV)/.test-ready ## Exhaustive brute force over all windows (long)
	$(BIN)/python -m pytest -n 2 -m sweep

crash: $(VENV)/.test-ready ## Kill campaigns at every step of a close (long)
	$(BIN)/python -m pytest -n 2 -m crash

AUDITS := retroactivity privacy reconstruct differencing price

audit: $(VENV)/.run-ready ## Try to break both promises, the long way; ends with a report in audit-out/
	@mkdir -p audit-out
	@failed=0; for name in $(AUDITS); do \
		echo "retrodp audit $$name --deep"; \
		$(BIN)/retrodp audit $$name --deep --json > audit-out/$$name.json || failed=1; \
	done; \
	$(BIN)/retrodp audit report $(AUDITS:%=--from audit-out/%.json) -o audit-out/report.html && exit $$failed

golden: $(VENV)/.test-ready ## Rewrite the golden files; review them as a diff
	$(BIN)/python -m tests.golden.regenerate

bench: .venv-bench/.ready ## Speed, error and memory beside the peers, in an environment of its own
	.venv-bench/bin/python -m benchmarks

clean:
	rm -rf $(VENV) demo-out audit-out dist build .pytest_cache .mypy_cache .ruff_cache

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "retrodp needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run-ready: $(VENV)/bin/python pyproject.toml
	@echo "Installing retrodp and what it needs into $(VENV) ..."
	$(PIP) install -e '.[cluster]'
	@touch $@

$(VENV)/.test-ready: $(VENV)/bin/python pyproject.toml
	@echo "Installing retrodp and its test tools into $(VENV) ..."
	$(PIP) install -e '.[test]'
	@touch $@ $(VENV)/.run-ready

BENCH_PIP := .venv-bench/bin/python -m pip --disable-pip-version-check --quiet

.venv-bench/.ready: benchmarks/requirements.txt benchmarks/peers.txt pyproject.toml
	@echo "Installing the benchmarks and their peers into .venv-bench ..."
	$(PYTHON) -m venv .venv-bench
	$(BENCH_PIP) install -r benchmarks/requirements.txt -e .
	@grep -v '^#' benchmarks/peers.txt | while read -r peer; do \
		$(BENCH_PIP) install $$peer || echo "Left out, as it cannot be installed: $$peer"; \
	done
	@touch $@
