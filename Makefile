# gatebench: which outbound HTTP client should my gateway use?
# `make help` lists the targets; CI calls the same ones as a person.

.DEFAULT_GOAL := help
SHELL := /bin/bash

GO      ?= go
OUT     ?= out/quick
PLAN    ?= quick
LINT    := $(GO) tool -modfile=tools/go.mod golangci-lint
SOURCES := $(shell git ls-files -co --exclude-standard '*.go' 2>/dev/null)

.PHONY: help bench bench-standard outage switch bench-go bench-load truth truth-engine truth-verdict truth-long picture soak test check fmt lint vet tidy build fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

bench: build ## the main job: compare the four clients (plan quick, under 4 minutes) and write out/quick
	./bin/gatebench run $(PLAN) --out $(OUT)

bench-standard: ## the same with more blocks and longer trials (15 to 30 minutes), into out/standard
	$(MAKE) bench PLAN=standard OUT=out/standard

outage: build ## what breaker and retries make of an outage, for each client (plan outage, about 11 minutes), into out/outage
	$(MAKE) bench PLAN=outage OUT=out/outage

test: cc browser ## every test, under the race detector
	$(GO) test -race -timeout 15m ./...

check: fmt vet tidy lint ## format, vet, module files, lint

build: ## bin/gatebench
	$(GO) build -o bin/gatebench ./cmd/gatebench

fmt: ## fail where gofmt would change a file
	@bad=$$(gofmt -l $(SOURCES)); test -z "$$bad" || { echo "gofmt would change:"; echo "$$bad"; exit 1; }

vet: ## go vet
	$(GO) vet ./...

tidy: ## fail where go.mod or go.sum is not what the code needs
	$(GO) mod tidy -diff
	$(GO) mod verify

lint: ## golangci-lint, pinned in tools/go.mod
	$(LINT) run

switch: build ## the client of a gateway switched ten times at 1,000/s, behind either server (half a minute)
	$(GO) run ./loadtest/peers switch

bench-go: ## Go benchmarks of the hop, the adapters, the servers and the load engine
	$(GO) test -run '^$$' -bench . -benchmem ./...

bench-load: build ## the load engine beside wrk, ab, hey, vegeta and fortio: CPU per request (about 5 minutes, nothing else may run)
	$(GO) run ./loadtest/peers bench

truth: truth-engine truth-verdict ## whether the figures and the verdicts are true: truth-engine, then truth-verdict (about 40 minutes, nothing else may run)

truth-engine: build ## the load engine against closed forms and other tools, in real time (about 6 minutes)
	$(GO) run ./loadtest/peers truth

truth-verdict: build ## the verdict on 20 pairs of identical arms, a known dose of CPU time and a known tail (about 32 minutes)
	$(GO) run ./loadtest/peers verdict

truth-long: build ## the same with 100 pairs of identical arms (about 2 hours); those of earlier runs in out/identical.jsonl count
	$(GO) run ./loadtest/peers verdict -runs 50 -append out/identical.jsonl identical

soak: ## whose answer is whose over 20,000 requests a pair, and memory under 1 GB bodies
	$(GO) test ./internal/soak -v -timeout 60m -soak.full -soak.table $(CURDIR)/docs/results/soak.txt

picture: build browser ## docs/report.png: the top of the page on docs/results/quick
	./bin/gatebench report docs/results/quick --format html > docs/results/quick/report.html
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1100,1290 --screenshot=$(CURDIR)/docs/report.png file://$(CURDIR)/docs/results/quick/report.html

fuzz: ## every fuzz target for FUZZTIME each (default 30s)
	@tools/fuzz $${FUZZTIME:-30s}

clean: ## remove what make built (results in out/ stay)
	rm -rf bin

.PHONY: browser
browser: # the report page is tested in a real one, with axe-core
	@tools/need chromium chromium
	@tools/need node nodejs
	@tools/need npm npm
	@test -d tools/page/node_modules/axe-core || npm ci --prefix tools/page --no-audit --no-fund

.PHONY: cc
cc: # the race detector needs a C compiler
	@tools/need cc gcc libc6-dev
