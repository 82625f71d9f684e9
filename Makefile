# make demo       set up .venv and run the default study
# make test       set up .venv and run every check
# make test-verl  set up .venv-verl-cpu and run verl and vLLM with our losses on two CPU cores
# make test-slurm start a real SLURM and test the workflow on it (root; Debian's slurm-wlm and munge)
# make venv-gpu   set up .venv-gpu, where verl and vLLM run on GPUs
# make bench      time the engine, the workflow and the statistics

PYTHON ?= $(firstword $(shell command -v python3.11 python3.12 python3.13 python3))
CORES ?= $(shell nproc)
READY := .venv/.ready
export OMP_NUM_THREADS = 1

ENGINES := verl-cpu gpu

.PHONY: demo test test-verl test-slurm venv $(ENGINES:%=venv-%) lint types unit bench format schema clean
.DEFAULT_GOAL := demo

demo: venv
	.venv/bin/snakemake --cores $(CORES) --rerun-incomplete
	@echo "The report is results/report.html, the paper results/paper.pdf (where there is LaTeX); tables are in results/tables"

test: lint types unit

venv: $(READY)

define check_python
	@command -v "$(PYTHON)" >/dev/null || \
	  { echo "error: no Python at '$(PYTHON)': install Python 3.11 or newer, or make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is $$($(PYTHON) -V 2>&1), need 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "error: $(PYTHON) cannot make virtual environments: install its venv package (python3-venv)"; exit 1; }
endef

$(READY): envs/cpu/requirements.lock pyproject.toml
	$(check_python)
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check -r envs/cpu/requirements.lock
	.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $(READY)

# The lock files of the engines' environments are complete: what they leave out of a package's dependencies is meant.
$(ENGINES:%=venv-%): venv-%: .venv-%/.ready

.venv-%/.ready: envs/%/requirements.lock pyproject.toml
	$(check_python)
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/pip install --quiet --disable-pip-version-check --no-deps -r envs/$*/requirements.lock
	[ ! -f envs/$*/built.lock ] || \
	  .venv-$*/bin/pip install --disable-pip-version-check --no-deps --no-build-isolation -r envs/$*/built.lock
	.venv-$*/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

lint: venv
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/snakefmt --check Snakefile workflow

types: venv
	.venv/bin/mypy

unit: venv
	.venv/bin/pytest --numprocesses $(CORES) --dist loadfile

test-verl: venv-verl-cpu
	.venv-verl-cpu/bin/python -m pytest -m verl tests/verl

test-slurm: venv
	.venv/bin/pytest -rs -m slurm --numprocesses 4 --dist worksteal tests/slurm

bench: venv
	.venv/bin/snakemake --cores $(CORES) results/mini_base.json
	.venv/bin/python scripts/bench_engine.py
	.venv/bin/python scripts/bench_workflow.py
	.venv/bin/python scripts/bench_statistics.py

format: venv
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	.venv/bin/snakefmt Snakefile workflow

schema: venv
	.venv/bin/python scripts/export_schema.py docs/config.schema.json

clean:
	rm -rf .venv $(ENGINES:%=.venv-%) .snakemake .mypy_cache .pytest_cache .ruff_cache
