# Everything here sets itself up: it needs Go, and from Debian make, git and
# (for the race detector) gcc. What is built goes to bin/, which git ignores.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

BIN     := $(CURDIR)/bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# One build of each package serves the program and its tests. Without cgo the program runs
# on any Linux, and a thread has no stack of 8 MiB that counts where memory is limited by
# RLIMIT_DATA.
export CGO_ENABLED ?= 0

# The directory of a package is part of what Go's cache of builds keys on, unless -trimpath leaves
# it out. So every checkout and every test module shares one compilation of each package.
export GOFLAGS := -trimpath -buildvcs=false

# The packages for test, race and bench: make test PKG=./store/...
PKG     ?= ./...
# More flags for go test: make test TESTFLAGS='-count=1 -run Golden'
TESTFLAGS ?=

# Many packages wait more than they work: for processes, and for time to pass. So there
# are more of them at work than processors, and more tests of each.
AT_ONCE ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
TESTS_AT_ONCE ?= $(shell echo $$((2 * $(AT_ONCE))))

# Test modules: they bring dependencies that the product does not have. One that
# runs real servers has a command ./build that builds them, outside of the time
# that tests are given; each of these servers is a module below it.
E2E_MODULES := $(filter-out test/tools,$(patsubst %/go.mod,%,$(wildcard test/*/go.mod)))

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: build ## See Isthmus at work, all on loopback (Ctrl-C ends it)
	@$(BIN)/isthmus demo

# The version comes from us and not from go build, so that it works without git.
.PHONY: build
build: ## Build bin/isthmus
	@mkdir -p $(BIN)
	go build -ldflags '-X main.version=$(VERSION)' -o $(BIN)/isthmus ./cmd/isthmus

# Properties draw with one seed, so that a gate refuses a change for its fault alone; SEED=0 draws
# fresh ones. What failed once stays: rapid writes it to testdata/rapid, which is committed.
SEED ?= 1

# Runs go test with the flags $(1) over the packages $(2), and with the flags $(3) as well over
# the packages of them whose tests draw.
unless_all = $(if $(filter ./...,$(PKG)),$$($(1)),$(PKG))
define in_two
list() { go list -f "$$1" $(2) | sort; }; \
imports='{{$$p := .ImportPath}}{{range .TestImports}}{{$$p}} {{.}}{{"\n"}}{{end}}{{range .XTestImports}}{{$$p}} {{.}}{{"\n"}}{{end}}'; \
drawing=$$(list "$$imports" | sed -n 's| pgregory.net/rapid$$||p' | sort -u); \
rest=$$(comm -23 <(list '{{.ImportPath}}') <(printf '%s\n' $$drawing)); status=0; \
if [ -n "$$rest" ]; then go test $(1) $$rest || status=1; fi; \
if [ -n "$$drawing" ]; then go test $(1) $$drawing $(3) || status=1; fi; \
exit $$status
endef

# go vet has looked at more than go test would once again. The attacks are make hostile.
.PHONY: test
test: ## Vet, then run every test of the module but the attacks (PKG=, TESTFLAGS=)
	@go vet $(PKG)
	@$(call in_two,-vet=off -p $(AT_ONCE) -parallel $(TESTS_AT_ONCE) -timeout 35m $(TESTFLAGS),$(call unless_all,go list ./... | grep -v /test/hostile$$),-rapid.seed=$(SEED))

# Random histories of everything: make test tries some hundreds of them. One of a
# writer to an API server costs as much as many of those.
HISTORIES ?= 10000
.PHONY: laws
laws: ## Hold the laws of the whole by HISTORIES (10000) random histories (SEED=)
	@status=0; \
	go test -timeout 60m $(TESTFLAGS) -run '^TestAnyHistoryEndsWithWhatTheRegistriesSay$$' ./test/laws -rapid.checks=$$(($(HISTORIES) / 4)) -rapid.seed=$(SEED) || status=1; \
	go test -timeout 60m $(TESTFLAGS) ./output/istio ./output/istio/plan ./output/istio/translate -rapid.checks=$$(($(HISTORIES) / 100)) -rapid.seed=$(SEED) || status=1; \
	exit $$status

# Attacks whose name has this in it: make hostile ATTACK=names
ATTACK ?= .
.PHONY: hostile
hostile: build ## Attack the real program in 512 MiB beside a good client (ATTACK= narrows)
	go test -timeout 35m -v $(TESTFLAGS) -run '^(TestMemoryLimitIsHard|TestAttacks)$$/$(ATTACK)' ./test/hostile -full

.PHONY: stories
stories: ## Run the end-to-end stories of the gate, on real servers and clients
	go run ./test/parts stories

.PHONY: touched
touched: ## Run the long parts that a change since their last result concerns; commit their results
	go run ./test/parts touched

.PHONY: stale
stale: ## The same with fixed seeds and without a note: for the gate
	go run ./test/parts stale

.PHONY: e2e
e2e: ## Run the test modules under test/ as a whole (MODULE= narrows, as a regular expression)
	go run ./test/parts all '$(or $(MODULE),^[^l])'

# The race detector looks for orders of events and not for inputs, which make test draws: so
# properties are tried fewer times here.
RACE_CHECKS ?= 20
# The timers of a synctest bubble share one context of the detector, and two processors that run
# timers of one bubble at once break it (go1.26: CHECK failed, with kEpochLast or TraceSkipGap).
# With one processor a test program runs one at a time, in an order that the detector randomizes.
.PHONY: race
race: ## Run the packages that share data under the race detector (PKG=, TESTFLAGS=)
	@command -v "$$(go env CC)" >/dev/null || { echo 'race: needs a C compiler: apt-get install gcc libc6-dev' >&2; exit 1; }
	@export CGO_ENABLED=1; $(call in_two,-race -cpu 1 -vet=off -p $(AT_ONCE) -parallel $(TESTS_AT_ONCE) -timeout 35m $(TESTFLAGS),$(call unless_all,CGO_ENABLED=0 go run ./test/parts racing),-rapid.checks=$(RACE_CHECKS) -rapid.seed=$(SEED))

.PHONY: nightly
nightly: ## Everything, with fresh seeds and in full: some three hours
	@status=0; \
	$(MAKE) test SEED=0 || status=1; $(MAKE) lint || status=1; \
	$(MAKE) laws HISTORIES=50000 SEED=0 || status=1; $(MAKE) hostile || status=1; \
	$(MAKE) e2e || status=1; $(MAKE) race PKG="$$(go list ./... | tr '\n' ' ')" SEED=0 || status=1; \
	$(MAKE) fuzz FUZZTIME=1m || status=1; $(MAKE) mutate || status=1; \
	exit $$status

.PHONY: lint
lint: tool-golangci-lint lint-api ## Check the form of code and API; FIX=1 fixes what can be fixed
	@status=0; \
	for module in . $(E2E_MODULES); do \
		echo "lint: $$module"; \
		(cd "$$module" && $(BIN)/golangci-lint run $(if $(FIX),--fix) --config $(CURDIR)/.golangci.yml ./...) || status=1; \
	done; \
	exit $$status

# The proto files are compared with the last commit in which they were different. So a
# change is checked before it is committed, and in a clean checkout it still is.
PROTOS := ':(glob)api/**/*.proto'
.PHONY: lint-api
lint-api: tool-buf ## Check the form of the API, and that it breaks no program
	@status=0; \
	echo 'lint: api'; \
	$(BIN)/buf lint || status=1; \
	before=; \
	for commit in $$(git log --format=%H -- $(PROTOS) 2>/dev/null); do \
		if ! git diff --quiet "$$commit" -- $(PROTOS); then before=$$commit; break; fi; \
	done; \
	if [ -n "$$before" ]; then \
		echo "breaking: api against $$(git log -1 --format='%h (%s)' "$$before")"; \
		earlier=$$(mktemp -d); trap 'rm -rf "$$earlier"' EXIT; \
		git archive "$$before" api | tar -x -C "$$earlier"; \
		$(BIN)/buf breaking --against "$$earlier/api" || status=1; \
	else \
		echo 'breaking: git knows no other version of api to compare with'; \
	fi; \
	exit $$status

# The fuzzer takes one target at a time. What it finds is written to
# testdata/fuzz of the package and belongs into the commit of the fix.
FUZZTIME ?= 30s
# Only targets that match: make fuzz FUZZ=Decode
FUZZ ?= .
# Tries to shorten an input that reached something new. To shorten a whole
# history costs more than it is worth: FUZZMINIMIZE=60s for what is small.
FUZZMINIMIZE ?= 50x
.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (30s) each (FUZZ= narrows)
	@found=0; \
	while IFS=: read -r file target; do \
		[[ $$target =~ $(FUZZ) ]] || continue; \
		found=1; echo "fuzz: $$(dirname "$$file") $$target"; \
		go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime $(FUZZMINIMIZE) "$$(dirname "$$file")" </dev/null; \
	done < <(find . \( -name testdata -o -name '.?*' -o -path ./bin -o -path './test/*' \) -prune -o -name '*_test.go' -print \
		| sort | xargs -r awk 'match($$0, /^func Fuzz[A-Za-z0-9_]*\(/) {print FILENAME ":" substr($$0, 6, RLENGTH - 6)}'); \
	if [ $$found = 0 ]; then echo 'fuzz: there is no such fuzz target'; fi

# Only rows that match: make mutate ROW=store/
ROW ?=
.PHONY: mutate
mutate: ## Break each promise of the package docs; a test must notice it (ROW= narrows)
	go run ./test/mutate -row '$(ROW)'

BENCH ?= .
COUNT ?= 1
.PHONY: bench
bench: ## Run benchmarks into bin/bench.txt; compare with OLD= (BENCH=, COUNT=, PKG=)
	@mkdir -p $(BIN)
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(TESTFLAGS) $(PKG) | tee $(BIN)/bench.txt
	@$(if $(OLD),$(MAKE) tool-benchstat && $(BIN)/benchstat $(OLD) $(BIN)/bench.txt)

.PHONY: generate
generate: ## Regenerate what is generated; nothing to commit if it was current
	PATH="$(BIN):$$PATH" go generate ./...

# Tools are pinned in test/tools, and buf in a module below it, so that their needs
# never become the product's or each other's. A tool is built anew when its stamp,
# named after the pins and the Go version, is missing; building one takes minutes.
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
BENCHSTAT     := golang.org/x/perf/cmd/benchstat
BUF           := github.com/bufbuild/buf/cmd/buf
PINS = $(shell { cat $(1)/go.mod $(1)/go.sum; go env GOVERSION GOOS GOARCH; } | cksum | cut -d ' ' -f 1)

.PHONY: tool-golangci-lint tool-benchstat tool-buf
tool-golangci-lint: ; @$(call tool,golangci-lint,$(GOLANGCI_LINT),test/tools)
tool-benchstat: ; @$(call tool,benchstat,$(BENCHSTAT),test/tools)
tool-buf: ; @$(call tool,buf,$(BUF),test/tools/buf)

define tool
stamp=$(BIN)/.$(1)-$(call PINS,$(3)); \
if ! [ -e $$stamp ] || ! [ -x $(BIN)/$(1) ]; then \
	echo "building $(1), once for these pins"; \
	mkdir -p $(BIN); rm -f $(BIN)/.$(1)-*; \
	GOWORK=off GOBIN=$(BIN) go -C $(3) install -ldflags='-s -w' $(2); \
	touch $$stamp; \
fi
endef
