# Every command of the project. `make help` lists them; nothing is written outside this folder and pip's cache.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip --disable-pip-version-check install -qq
PINS   := pyproject.toml constraints.txt
BENCH  := .venv-bench
PEERS  := 'litellm[proxy]' 'llm-rosetta[gateway]' 'pydantic-ai-slim[anthropic]' langchain-anthropic

# Two environments with agent frameworks: on the newest SDKs, and on openai 2 with httpx.
AGENTS      := .venv-frameworks
AGENTS_ENVS := httpx2 httpx

# An environment with the newest SDKs, without pins.
SDKS    := .venv-sdks
VENDORS := openai anthropic google-genai mistralai botocore pyyaml

# An environment with the loaders and validators of training rows, and Ray.
CORPORA := .venv-corpora

# An environment with trainers, which bring PyTorch, and Spark.
TRAINERS := .venv-trainers

# An environment with LangChain's clients and the newest SDKs, for the suites of other projects.
SUITES := .venv-suites

# A virtual environment holds its own path, so a moved or copied checkout needs a new one: the stamps carry a number
# made from the path, and are found only where they were written.
HERE   := $(shell printf '%s' '$(CURDIR)' | cksum | cut -d ' ' -f 1)
MADE   := $(VENV)/made-$(HERE)
READY  := $(VENV)/ready-$(HERE)

# A second environment with an older judge of Mistral; everything else it takes from the first.
OLD      := $(VENV)-mistral
OLD_PINS := tests/conformance/mistral-common-1.11.txt

# What `make quick` runs: no server, no vendor's client, no process that is killed.
QUICK := tests/canonical tests/render tests/view tests/conformance/test_rules.py tests/streams/test_framing.py \
  tests/conversations/test_conversations.py tests/test_conversation.py tests/test_report.py tests/test_models.py \
  tests/test_finding_messages.py tests/test_convert_tools.py tests/test_reply_reader.py tests/test_public_api.py \
  $(foreach api,anthropic openai_chat openai_responses gemini bedrock mistral kimi,tests/wire/test_$(api).py) \
  tests/properties/test_properties.py::test_chaotic_body_becomes_valid \
  tests/properties/test_properties.py::test_round_trip_keeps_every_interaction

# What `make soak` runs whole: properties, state machines, killed writers, and each file that tries a sample of its rows
# in `make test` (`tests/budget.py`). Of the other files it runs the properties.
SOAK = tests/properties tests/store tests/transport tests/sessions/test_killed_moves.py tests/runtime/test_scheduler_machine.py \
  $(shell grep -rlE '^from tests.budget import .*(sample|SOAK)' tests --include='test_*.py')

# Each worker begins with one half of the tests in their order, so most files and their fixtures are set up once.
WORKERS := -n 2 --dist worksteal

# The plugin that writes inline snapshots costs something for each test; without it they are compared as they are.
PYTEST := $(BIN)/pytest $(WORKERS) -p no:inline_snapshot

export TMPDIR := $(CURDIR)/$(VENV)/tmp

# Bytecode is written into __pycache__: without it each process that a test starts compiles what it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo recording test quick lint types fmt snapshots docs specs prices soak compare bench frameworks clients suites mcp recorded sdks templates corpora trainers pins clean

help: ## show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY)-dev $(OLD)/ready-$(HERE) ## make .venv with the package and all test tools (once; again when the pins change)

demo: $(READY) ## one agent's task through every API, without segue and with it, on emulated providers
	@$(BIN)/segue demo
	@command -v segue > /dev/null || echo "segue is $(BIN)/segue here; pip install . puts it on your PATH."

recording: $(READY) ## write the pictures of the README: docs/refused-accepted.svg and docs/demo.svg
	@$(BIN)/python -m scripts.recording

# The types are checked beside the first tests: alone, they keep only one core busy.
test: setup templates lint ## everything that must pass: style, types, import contracts, tests
	@$(BIN)/basedpyright > $(VENV)/tmp/types.txt 2>&1 & types=$$!; trap 'kill $$types; exit 130' INT TERM; \
	$(PYTEST) $(ARGS); failed=$$?; \
	wait $$types || { cat $(VENV)/tmp/types.txt; failed=1; }; exit $$failed

quick: setup ## the core in 90 seconds: ruff, tables, conversations, rules, some properties; make test is complete
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@SEGUE_EXAMPLES=400 $(PYTEST) -q $(QUICK) $(ARGS)

lint: setup ## ruff (rules and format) and the import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-logo

types: setup ## basedpyright: src strict, tests standard
	@$(BIN)/basedpyright

fmt: setup ## format, and fix what ruff can fix by itself
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

snapshots: setup ## write what every wire makes of every conversation, and inline snapshots; read the diff, then make test
	@SEGUE_SNAPSHOTS=write $(BIN)/pytest -q --inline-snapshot=create,fix tests/conversations tests/test_report.py $(ARGS) || true

docs: setup ## write the generated pages of docs/ and src/segue/_literals.py
	@$(BIN)/python -m scripts.generate_literals
	@$(BIN)/python -m scripts.generate_docs

specs: setup ## write the vendors' request types of src/segue/specs/ from their SDKs
	@$(BIN)/python -m scripts.generate_specs

prices: setup ## write the table of prices of src/segue/specs/ from genai-prices
	@$(BIN)/python -m scripts.generate_prices

templates: setup ## unpack the models' own chat templates into .cache (once; tests say why they skip if that can't be)
	@$(BIN)/python -m tests.templates.unpack

soak: setup ## the properties at length: 80 times the examples, thousands of killed writers, 256 streams for a minute
	@SEGUE_SOAK=1 $(PYTEST) --timeout=0 $(SOAK) $(ARGS)
	@SEGUE_SOAK=1 $(PYTEST) --timeout=0 -m hypothesis $(SOAK:%=--ignore=%) $(ARGS)
	@$(BIN)/python -m tests.gateway.load

compare: setup ## compare bodies, reports and replies with those of an earlier commit: BASE=COMMIT (ARGS="--sessions 500")
	@test -n "$(BASE)" || { echo "set BASE to a commit" >&2; exit 2; }
	@$(BIN)/python -m tests.compare $(ARGS) "$(BASE)"

bench: $(BENCH)/ready-$(HERE) ## run each script in benchmarks/ beside its peers, in an environment of its own
	@set -e; for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BENCH)/bin/python "$$script" $(ARGS); done

frameworks: $(AGENTS_ENVS:%=$(AGENTS)-%/ready-$(HERE)) ## agents of LangChain, pydantic-ai and others on every emulated provider, in environments of their own
	@failed=0; for env in $(AGENTS_ENVS); do \
	  $(AGENTS)-$$env/bin/python -m tests.frameworks.run $(ARGS) || failed=1; \
	  $(AGENTS)-$$env/bin/python -m tests.frameworks.pages || failed=1; done; exit $$failed

# Separate from `make test`: it needs npm and runs for an hour, or half of it with JOBS=2. A cell with a result is not
# run again.
clients: setup ## run eight coding clients from npm behind the gateway, then write docs/clients.md (ONLY=…)
	@$(BIN)/python -m tests.clients $(ARGS)

# Separate from `make test`: it needs npm and runs for half an hour. A cell with a result is not run again.
suites: $(SUITES)/ready-$(HERE) ## run suites of other projects (LangChain, AI SDK, SDK helpers) behind the gateway, then write docs/suites.md (ONLY=…)
	@$(SUITES)/bin/python -m tests.suites $(ARGS)

# Separate from `make test`: it needs npm.
mcp: setup ## call tools of MCP servers from npm and PyPI, of both generations of the protocol
	@$(BIN)/python -m tests.mcp_servers

# Separate from `make test`: the recordings are a checkout of pydantic/pydantic-ai, and do not enter this repository.
recorded: setup ## judge segue by recorded traffic: RECORDINGS=DIR, a checkout of pydantic-ai (ARGS="--only …")
	@test -n "$(RECORDINGS)" || { echo "set RECORDINGS to a checkout of pydantic/pydantic-ai" >&2; exit 2; }
	@$(BIN)/python -m tests.recorded $(ARGS) "$(RECORDINGS)"

sdks: $(SDKS)/made-$(HERE) ## judge segue by every type of the newest vendor SDKs, in an environment of its own (ARGS="--only …")
	@$(SDKS)/bin/python -m pip --disable-pip-version-check install -qq --upgrade -e . $(VENDORS)
	@$(SDKS)/bin/python -m tests.sdks $(ARGS)

corpora: $(CORPORA)/ready-$(HERE) ## judge the rows of segue corpus by datasets, ATIF's validator and Ray (ARGS="atif ray")
	@$(CORPORA)/bin/python -m tests.corpora.judges $(ARGS)

trainers: $(TRAINERS)/ready-$(HERE) ## prepare the rows of segue corpus by TRL and Axolotl, and run Spark (ARGS="trl axolotl")
	@$(TRAINERS)/bin/python -m tests.corpora.trainers $(ARGS)

pins: ## take the newest version of everything into constraints.txt
	@rm -rf $(VENV)-pins && $(PYTHON) -m venv $(VENV)-pins
	@$(VENV)-pins/bin/python -m pip --disable-pip-version-check install -qq hatchling editables -e '.[dev]'
	@{ sed '/^[^#]/d' constraints.txt; $(VENV)-pins/bin/python -m pip freeze --exclude-editable; } > constraints.new
	@mv constraints.new constraints.txt && rm -rf $(VENV)-pins

clean: ## remove all that was made: .venv, caches, builds
	@rm -rf $(VENV) $(VENV)-pins $(OLD) $(BENCH) $(SDKS) $(SUITES) $(CORPORA) $(TRAINERS) $(AGENTS_ENVS:%=$(AGENTS)-%) dist build .cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests benchmarks docs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "segue needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "making $(VENV)"
	@rm -rf $(VENV) && mkdir -p $(VENV)/tmp && $(PYTHON) -m venv $(VENV)
	@touch $@

$(READY): $(PINS) | $(MADE)
	@echo "installing segue into $(VENV)"
	@$(PIP) -e .
	@touch $@

$(READY)-dev: $(PINS) | $(MADE)
	@echo "installing segue and its test tools into $(VENV)"
	@$(PIP) -e '.[dev]'
	@touch $(READY) $@

$(OLD)/ready-$(HERE): $(OLD_PINS) | $(READY)-dev
	@echo "installing an older mistral-common into $(OLD)"
	@rm -rf $(OLD) && $(BIN)/python -m venv --without-pip $(OLD)
	@$(BIN)/python -m pip --disable-pip-version-check --python $(OLD)/bin/python install -qq --no-deps -r $(OLD_PINS)
	@$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	  > "$$($(OLD)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/first.pth"
	@touch $@

$(BENCH)/ready-$(HERE): pyproject.toml | $(MADE)
	@echo "installing segue and its peers into $(BENCH)"
	@rm -rf $(BENCH) && $(PYTHON) -m venv $(BENCH)
	@$(BENCH)/bin/python -m pip --disable-pip-version-check install -qq -e '.[gateway]' $(PEERS)
	@touch $@

$(SUITES)/ready-$(HERE): tests/suites/requirements.txt pyproject.toml | $(MADE)
	@echo "installing segue and the suites into $(SUITES)"
	@rm -rf $(SUITES) && $(PYTHON) -m venv $(SUITES)
	@$(SUITES)/bin/python -m pip --disable-pip-version-check install -qq -e . -r tests/suites/requirements.txt
	@touch $@

$(CORPORA)/ready-$(HERE): tests/corpora/requirements.txt pyproject.toml | $(MADE)
	@echo "installing segue and the judges of corpora into $(CORPORA)"
	@rm -rf $(CORPORA) && $(PYTHON) -m venv $(CORPORA)
	@$(CORPORA)/bin/python -m pip --disable-pip-version-check install -qq -e . -r tests/corpora/requirements.txt
	@touch $@

$(TRAINERS)/ready-$(HERE): tests/corpora/trainers.txt pyproject.toml | $(MADE)
	@echo "installing segue and trainers into $(TRAINERS)"
	@rm -rf $(TRAINERS) && $(PYTHON) -m venv $(TRAINERS)
	@$(TRAINERS)/bin/python -m pip --disable-pip-version-check install -qq -e . -r tests/corpora/trainers.txt
	@$(TRAINERS)/bin/python -m pip --disable-pip-version-check install -qq --no-deps axolotl
	@touch $@

$(SDKS)/made-$(HERE):
	@rm -rf $(SDKS) && $(PYTHON) -m venv $(SDKS)
	@touch $@

$(AGENTS)-%/ready-$(HERE): tests/frameworks/%.txt pyproject.toml | $(MADE)
	@echo "installing segue and frameworks into $(AGENTS)-$*"
	@rm -rf $(AGENTS)-$* && $(PYTHON) -m venv $(AGENTS)-$*
	@$(AGENTS)-$*/bin/python -m pip --disable-pip-version-check install -qq -e . -r tests/frameworks/$*.txt
	@touch $@
