SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules --no-print-directory

# The tools that internal/tools/go.mod pins, built by the Go that is used here.
TOOLS    := $(CURDIR)/.tmp/tools-$(shell go env GOVERSION 2>/dev/null)
GOLANGCI := $(TOOLS)/golangci-lint
SUMTYPE  := $(TOOLS)/go-check-sumtype
BENCHSTAT := $(TOOLS)/benchstat

FUZZTIME ?= 10s
N        ?= 1000
SEED     ?=
OLD      ?=

# Every module's folder, as go.work lists them, and every package in them.
MODS = $$(go list -m -f '{{.Dir}}')
PKGS = $$(go list -m -f '{{.Dir}}/...')

.PHONY: check
check: lint drift race ## All that CI runs: lint, drift, race (default)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what is missing: git, KiCad 8 or newer with its libraries
	@scripts/setup.sh

.PHONY: demo
demo: setup ## Change a bundled board by a request in words: no account, no key
	@scripts/demo.sh

.PHONY: test
test: setup ## Test every module
	@scripts/setup.sh postgres
	go test work

.PHONY: race
race: setup ## Test every module with the race detector, in random order
	@scripts/setup.sh cc postgres
	go test -race -shuffle=on -timeout 20m work

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (10s)
	@for m in $(MODS); do (cd "$$m" && for p in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' "$$p" | grep ^Fuzz || true); do \
	    echo "$$p $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) "$$p"; done; done); done

# Everything that breaks durability, at random, on every store. The first run that
# breaks a promise ends it and is named by its seed.
.PHONY: crash
crash: ## Kill and disturb N runs (1000) at random on every store; SEED=n plays one again
	@scripts/setup.sh postgres
	cd internal/acceptance && REQUIRE_POSTGRES=1 FIDUCIAL_CRASH_N=$(if $(SEED),1,$(N)) FIDUCIAL_CRASH_SEED=$(or $(SEED),1) \
	  go test -count=1 -timeout 6h -v -run '$(if $(SEED),^TestCrash$$,^(TestCrash|TestTwoAtOnce|TestFrozenHolder|TestSimulation)$$)' .

.PHONY: bench
bench: setup ## Run the benchmarks into .tmp/bench.txt; OLD=FILE compares with an earlier one
	@scripts/bench.sh
	@if [[ -n "$(OLD)" ]]; then $(MAKE) $(BENCHSTAT) && $(BENCHSTAT) "$(OLD)" .tmp/bench.txt; fi

.PHONY: lint
lint: $(GOLANGCI) $(SUMTYPE) ## Lint every module
	$(GOLANGCI) run $(PKGS)
	$(SUMTYPE) $(PKGS)

.PHONY: fmt
fmt: $(GOLANGCI) ## Format every module
	$(GOLANGCI) fmt $(MODS)

.PHONY: golden
golden: setup ## Rewrite golden files; read the diff before you commit it
	@scripts/golden.sh

.PHONY: generate
generate: setup ## Regenerate code and fixtures, and tidy every go.mod
	go generate work
	@for m in $(MODS) internal/tools; do (cd "$$m" && GOWORK=off go mod tidy); done

.PHONY: drift
drift: ## Fail when what make generate writes is stale
	@scripts/drift.sh

# One go install builds all tools; the stamp's time tells whether they are those of go.mod.
$(GOLANGCI) $(SUMTYPE) $(BENCHSTAT) &: internal/tools/go.mod internal/tools/go.sum
	@echo 'building the tools of internal/tools into $(TOOLS:$(CURDIR)/%=%) (a minute or two, once)'
	cd internal/tools && GOWORK=off GOFLAGS=-mod=readonly GOBIN=$(TOOLS) go install tool
	@touch $(GOLANGCI) $(SUMTYPE) $(BENCHSTAT)
