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
OFFLINE  ?=
VERSION  ?=
PLATFORM ?=
DRY_RUN  ?=
RUN      ?= ^$$
MODULE   ?=
BRANCH   ?=

# Every module's folder, as go.work lists them, and every package in them.
MODS = $$(go list -m -f '{{.Dir}}')
PKGS = $$(go list -m -f '{{.Dir}}/...')

.PHONY: check
check: lint drift docs contents race ## All that CI runs: lint, drift, docs, contents, race (default)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what is missing: git, KiCad 8 or newer with its libraries
	@scripts/setup.sh

.PHONY: demo
demo: setup ## Change a bundled board by a request in words: no account, no key
	@scripts/demo.sh

.PHONY: test
test: setup ## Test every module
	@scripts/setup.sh postgres
	go test -timeout 30m work
	@cd internal/tools && GOWORK=off go test ./...

.PHONY: race
race: setup ## Test every module with the race detector, in random order
	@scripts/setup.sh cc postgres
	go test -race -shuffle=on -timeout 40m work
	@cd internal/tools && GOWORK=off go test -race -shuffle=on ./...

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
	$(if $(SEED),,REQUIRE_POSTGRES=1 go test -count=1 -v -run 'Flips|^Test(Folder|SQLite)$$/^Flips$$' ./journal ./journal/sqlite ./journal/postgres)

.PHONY: bench
bench: setup ## Run the benchmarks into .tmp/bench.txt; OLD=FILE compares with an earlier one
	@scripts/bench.sh
	@if [[ -n "$(OLD)" ]]; then $(MAKE) $(BENCHSTAT) && $(BENCHSTAT) "$(OLD)" .tmp/bench.txt; fi

.PHONY: lint
lint: $(GOLANGCI) $(SUMTYPE) ## Lint every module
	$(GOLANGCI) run --allow-parallel-runners $(PKGS)
	cd internal/tools && GOWORK=off $(GOLANGCI) run --allow-parallel-runners ./...
	$(SUMTYPE) $(PKGS)
	@scripts/spdx.sh --check

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
	@$(MAKE) licences

.PHONY: drift
drift: ## Fail when what make generate writes is stale
	@scripts/drift.sh

# What looks at the modules as their users get them: internal/tools/cmd/publish.
PUBLISH = $(CURDIR)/.tmp/publish/publish

.PHONY: $(PUBLISH)
$(PUBLISH):
	@cd internal/tools && GOWORK=off go build -o $@ ./cmd/publish

.PHONY: publish-check
publish-check: $(PUBLISH) ## Publish the committed tree into a proxy of its own, look into it, use it; OFFLINE=1 without a network
	$(PUBLISH) check $(if $(OFFLINE),-offline)

.PHONY: contents
contents: $(PUBLISH) ## Hold what the committed tree would publish to its list: files, sizes, nothing like a key
	$(PUBLISH) contents

.PHONY: alone
alone: $(PUBLISH) ## Build and vet each module outside the workspace with the oldest Go it states; RUN=. runs its tests, MODULE=kicad takes one
	$(PUBLISH) alone -run '$(RUN)' $(if $(MODULE),-module '$(MODULE)')

.PHONY: api
api: $(PUBLISH) ## Compare what is exported with the last tag; VERSION=vX.Y.Z fails when that may not break callers
	$(PUBLISH) api -version '$(VERSION)'

.PHONY: docs
docs: $(PUBLISH) ## Render every package's documentation; fail on an exported name without, and on links that lead nowhere
	$(PUBLISH) docs

.PHONY: licences
licences: $(PUBLISH) ## Write THIRD_PARTY.md: what is linked of others, and under which licence
	@$(PUBLISH) licences

.PHONY: cross
cross: $(PUBLISH) ## Build the command for linux, darwin and windows on amd64 and arm64 into .tmp/publish/dist, which takes some minutes; PLATFORM=linux/amd64 builds one
	$(PUBLISH) cross -platform '$(PLATFORM)'

.PHONY: windows
windows: ## Vet every module as Windows compiles it, tests too
	@rc=0; for m in $(MODS) internal/tools; do (cd "$$m" && GOWORK=off GOOS=windows go vet ./...) || rc=1; done; exit $$rc

.PHONY: release
release: $(PUBLISH) ## Release all modules as VERSION=vX.Y.Z: a commit and tags, not pushed; DRY_RUN=1 only prints them; BRANCH=name when not from main
	$(PUBLISH) release $(if $(DRY_RUN),,-do) $(if $(BRANCH),-branch '$(BRANCH)') '$(VERSION)'

# One go install builds all tools; the stamp's time tells whether they are those of go.mod.
$(GOLANGCI) $(SUMTYPE) $(BENCHSTAT) &: internal/tools/go.mod internal/tools/go.sum
	@echo 'building the tools of internal/tools into $(TOOLS:$(CURDIR)/%=%) (a minute or two, once)'
	cd internal/tools && GOWORK=off GOFLAGS=-mod=readonly GOBIN=$(TOOLS) go install tool
	@touch $(GOLANGCI) $(SUMTYPE) $(BENCHSTAT)
