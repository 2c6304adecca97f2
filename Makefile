# Slipway. `make help` lists the targets.
SHELL := /bin/sh
GO ?= go
BIN := bin/slipway
GOLANGCI_VERSION := v2.15.0
GREMLINS_VERSION := v0.6.0
ASL_VALIDATOR_VERSION := 4.0.0
TOOLS := $(CURDIR)/.cache/tools
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X main.release=$(VERSION)
DEMO_DIR := .cache/demo
FUZZTIME ?= 60s
SEEDS ?= 1000
SEED ?= 0
KILLS ?= 50
FUNCTIONS := planner provisioner publisher janitor trigger

.PHONY: help build demo test lint fmt bench bench-init lambdas test-kill sim sim-mutants mutants test-emulators test-diff-oracle fuzz schema synth clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 18

build: ## build bin/slipway
	@mkdir -p bin
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cli

demo: build ## deploy, change and destroy the guestbook example against the simulated AWS
	@mkdir -p $(DEMO_DIR)
	$(GO) build -o $(DEMO_DIR)/guestbook ./examples/guestbook
	@sh examples/demo.sh $(CURDIR)/$(BIN) $(CURDIR)/$(DEMO_DIR)

test: ## run every test
	$(GO) test -timeout 20m ./...

test-kill: ## kill 50 deploys at random moments and deploy again; KILLS=N, SEED=S repeats one
	SLIPWAY_KILLS=$(KILLS) SLIPWAY_KILL_SEED=$(SEED) $(GO) test -count=1 -timeout 30m -v -run KilledAtAnyMoment ./pkg/local

sim: ## play SEEDS whole deployments with faults, from SEED on (a random one); docs/simulation.md
	$(GO) test ./pkg/sim -run '^TestHistories$$' -count 1 -timeout 120m -v -args -seeds $(SEEDS) -seed $(SEED)

sim-mutants: ## play the engine with documented bugs in it: each must break an invariant within 5,000 histories
	$(GO) test ./pkg/sim -run '^TestMutants$$' -count 1 -timeout 600m -v -args -mutants 5000

mutants: $(TOOLS)/gremlins ## plant faults in pkg/state and pkg/run; at least 80 % must be noticed; MUTANTS=packages
	sh .ci/mutants $(MUTANTS)

$(TOOLS)/gremlins:
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) GOFLAGS= $(GO) install github.com/go-gremlins/gremlins/cmd/gremlins@$(GREMLINS_VERSION)

lint: $(TOOLS)/golangci-lint ## vet, static analysis, package rules, state machine definitions
	$(GO) vet ./...
	$(TOOLS)/golangci-lint run ./...
	sh statemachine/validate.sh $(ASL_VALIDATOR_VERSION)

$(TOOLS)/golangci-lint:
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) GOFLAGS= $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

fmt: ## format the code
	gofmt -w cli functions infra pkg examples

bench: build ## measure: start-up, a 200-resource deploy, diff, stores, schema
	$(GO) run ./pkg/local/bench -slipway $(BIN)
	$(GO) test -run '^$$' -bench . -benchtime 1s ./pkg/schema/... ./pkg/diff/... ./pkg/graph/... ./pkg/plan/... ./pkg/runlog/... ./pkg/sandbox/...

bench-init: ## measure how long the functions take to start, beside one that does nothing
	$(GO) run ./functions/pack -arch $$($(GO) env GOARCH) -out .cache/bench-init $(FUNCTIONS)
	$(GO) run ./pkg/emulators/bridge/bench $(FUNCTIONS:%=.cache/bench-init/%.zip)

lambdas: ## build the functions' arm64 zips under dist/
	$(GO) run ./functions/pack -out dist $(FUNCTIONS)

synth: lambdas ## synthesize the control plane's own app into infra/cdk.out
	rm -rf infra/cdk.out
	cd infra && CDK_OUTDIR=cdk.out $(GO) run -ldflags '$(LDFLAGS)' .

test-emulators: ## run the suites against AWS emulators in a Python venv; SAM validates the control plane's template
	pkg/emulators/run.sh
	sh infra/validate.sh

test-diff-oracle: ## compare replacement verdicts with cloudformation-diff and the registry schemas
	sh pkg/diff/oracle/run.sh

fuzz: ## fuzz everything that parses, FUZZTIME each (60s)
	sh .ci/fuzz $(FUZZTIME)

schema: ## regenerate the embedded resource-type index
	pkg/schema/gen/fetch.sh .cache/schema
	$(GO) run ./pkg/schema/gen -from .cache/schema -out pkg/schema/types.bin

clean: ## remove what the build made
	rm -rf bin dist .cache/demo infra/cdk.out
