# `make help` lists the targets. Everything is built by the Go toolchain and gcc;
# `make deps` installs the three Debian packages that are needed besides.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# go-nvml wraps every call of NVML, deprecated ones too; their warnings are not ours.
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations

PRODUCT  := ./classes/... ./driver/... ./kubeletplugin/... ./admission/... ./cmd/...
TESTS    := ./tests/arch/... ./tests/gpusim/... ./tests/harness/... ./tests/demo/... ./tests/probe/... ./tests/allocator/... ./tests/scenarios/...
UNIT     := $(PRODUCT) $(TESTS)
MODULES  := tests/cluster
TOOL     := go tool -modfile=tests/tools/go.mod
E2E_DIR  ?=

.PHONY: help
help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: deps
deps: ## install the Debian packages that builds need (root)
	@for p in gcc libc6-dev libseccomp-dev pkg-config; do dpkg -s $$p >/dev/null 2>&1 || missing="$${missing:-} $$p"; done; \
	if [ -n "$${missing:-}" ]; then echo "installing$$missing"; apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null; fi

.PHONY: build
build: bin/fairshard-kubelet-plugin bin/fairshard-admission bin/kubectl-fairshard bin/fairshard-cluster bin/gpusim bin/demo bin/probe ## build the product and the test tools into bin/

.PHONY: FORCE
FORCE:

# The plugin loads the NVML library at run time, which takes cgo; all else is static.
bin/fairshard-kubelet-plugin: FORCE
	@CGO_ENABLED=1 go build -trimpath -o $@ ./cmd/fairshard-kubelet-plugin
bin/fairshard-admission: FORCE
	@CGO_ENABLED=0 go build -trimpath -o $@ ./cmd/fairshard-admission
bin/kubectl-fairshard: FORCE
	@CGO_ENABLED=0 go build -trimpath -o $@ ./cmd/kubectl-fairshard
bin/gpusim: FORCE
	@CGO_ENABLED=0 go build -trimpath -o $@ ./tests/gpusim/cmd/gpusim
bin/demo bin/probe: FORCE
	@CGO_ENABLED=0 go build -trimpath -o $@ ./tests/$(@F)
bin/fairshard-cluster: FORCE
	@CGO_ENABLED=0 go -C tests/cluster build -trimpath -o $(CURDIR)/$@ ./cmd/fairshard-cluster

.PHONY: programs
programs: deps bin/fairshard-cluster ## build Kubernetes, etcd, containerd, runc and Kueue for the one-machine cluster (cached)
	@bin/fairshard-cluster build

.PHONY: demo
demo: deps build ## run the example on a one-machine cluster with simulated GPUs (root); it stays up
	@bin/demo -dir "$(E2E_DIR)"

.PHONY: demo-down
demo-down: bin/demo bin/fairshard-cluster ## end the cluster of `make demo`
	@bin/demo -dir "$(E2E_DIR)" -down

# Random tests: rapid runs a tenth of the long count. The flag exists only in packages that use rapid.
CHECKS         ?= 100
PLANNER_CHECKS ?= 10000
PLANNER        := ./admission/tree ./admission/fairshare ./admission/snapshot ./admission/decide ./tests/allocator
RAPID_PKGS   = $(shell grep -rl 'pgregory.net/rapid' --include='*_test.go' classes driver kubeletplugin admission tests/gpusim tests/allocator 2>/dev/null | xargs -r -n1 dirname | sort -u | sed 's,^,./,')

.PHONY: unit
unit: ## the fast loop: unit tests with the race detector, random order
	@go test -race -shuffle=on $(UNIT)
	@for m in $(MODULES); do go -C $$m test -shuffle=on ./...; done
	@if [ "$(CHECKS)" != 100 ]; then go test $(RAPID_PKGS) -rapid.checks=$(CHECKS); fi
	@go test -timeout=60m $(PLANNER) -rapid.checks=$(PLANNER_CHECKS)

.PHONY: integration
integration: programs build ## our controller against a real API server and a real Kueue (root)
	@FAIRSHARD_INTEGRATION=1 go test -count=1 -timeout=20m ./tests/integration/...

.PHONY: e2e
e2e: programs build ## the example, bad input and kills on a real cluster with real kubelets (root)
	@FAIRSHARD_E2E=1 go test -count=1 -timeout=30m ./tests/e2e/...

# Each part says how long it took; tests/BUDGET.md keeps the cold figures.
part = @began=$$SECONDS; $(MAKE) --no-print-directory $(1); echo "== $(1): $$((SECONDS - began)) s"

.PHONY: test
test: deps ## everything: unit, integration, end to end (random tests at a tenth)
	$(call part,programs)
	$(call part,unit)
	$(call part,cluster-test)
	$(call part,integration)
	$(call part,e2e)

.PHONY: cluster-test
cluster-test: programs ## the one-machine cluster itself: up twice, crashes, and that nothing is left (root)
	@FAIRSHARD_CLUSTER_TEST=1 go -C tests/cluster test -count=1 -timeout=20m ./...

.PHONY: test-long
test-long: ## the same with the long counts of the random tests
	@$(MAKE) --no-print-directory test CHECKS=1000 PLANNER_CHECKS=100000

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (default 30s)
	@grep -rl 'func Fuzz' --include='*_test.go' $(PRODUCT:/...=) tests/gpusim | while read -r file; do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\).*/\1/p' $$file); do \
	    echo "$$(dirname $$file) $$target"; go test -run='^$$' -fuzz="^$$target$$" -fuzztime=$${FUZZTIME:-30s} ./$$(dirname $$file); \
	  done; done

.PHONY: bench
bench: ## benchmarks of the product's packages
	@go test -run='^$$' -bench=. -benchmem $(PRODUCT)

# The figures of tests/BUDGET.md; see there for what each means.
.PHONY: bench-planner
bench-planner: ## one planner cycle: 100 to 4,000 nodes, gangs, reclaim
	@go test -run='^$$' -bench=. -benchmem -benchtime=2s ./admission/decide ./admission/fairshare ./admission/snapshot

.PHONY: lint
lint: ## golangci-lint over all modules
	@$(TOOL) golangci-lint run ./...
	@for m in $(MODULES); do (cd $$m && go tool -modfile=$(CURDIR)/tests/tools/go.mod golangci-lint run --config $(CURDIR)/.golangci.yml ./...); done

.PHONY: arch
arch: ## structure rules: imports, doc.go, ARCHITECTURE.md
	@go test -count=1 ./tests/arch

.PHONY: generate
generate: ## write generated files
	@go generate ./...

.PHONY: tidy
tidy: ## go.mod of every module is tidy (only checks)
	@go mod tidy -diff
	@for m in $(MODULES); do go -C $$m mod tidy -diff; done

.PHONY: verify
verify: ## generate, lint, arch, tidy, and nothing of it changed the tree: run before a push
	@before="$$(git status --porcelain)"; $(MAKE) --no-print-directory generate; \
	if [ "$$before" != "$$(git status --porcelain)" ]; then echo "make generate changed the tree: commit its result"; git status --short; exit 1; fi
	@$(MAKE) --no-print-directory tidy
	@$(MAKE) --no-print-directory arch
	@$(MAKE) --no-print-directory lint
	@echo "verify: clean"
