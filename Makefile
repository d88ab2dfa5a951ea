# canaryctl: `make help` lists the targets.
GO          ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 20s
SEEDS       ?= 200

.DEFAULT_GOAL := help
.PHONY: help build check fmt vet lint test scenarios stats soak bench bench-rivals fuzz golden picture proxy-load cover clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

# As it is released: without the C library it starts in four fifths of the time. A copy
# starts sooner than the file that the linker wrote.
build: ## build bin/canaryctl
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/canaryctl.linked ./cmd/canaryctl
	@cp bin/canaryctl.linked bin/canaryctl.new && mv bin/canaryctl.new bin/canaryctl && rm bin/canaryctl.linked

check: fmt build vet lint test scenarios ## all that a change must pass: build, vet, linters, import rules, race tests, scenarios

fmt: ## fail if a file is not gofmt-ed or go.mod is not tidy
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run gofmt -w on the files above'; exit 1; }
	$(GO) mod tidy -diff

vet:
	$(GO) vet ./...

lint: ## staticcheck, at its pinned version
	$(GO) run $(STATICCHECK) ./...

# The race detector makes a program wait a second before it ends: here that is every package.
test: ## all tests, with the race detector
	GORACE=atexit_sleep_ms=0 $(GO) test -race -shuffle=on -timeout 20m ./...

scenarios: build ## every built-in scenario, and the seeded budget of healthy-week
	bin/canaryctl simulate -q $$(bin/canaryctl simulate --list -o names) >/dev/null
	bin/canaryctl simulate -q healthy-week --runs $(SEEDS)

stats: ## simulated worlds against docs/reference/calibrate-figures.md, minutes; UPDATE=-update rewrites it
	$(GO) test ./internal/calibrate -run '^TestWorlds' -timeout 30m -stats $(UPDATE)

soak: ## the live view over 24 hours of one-minute windows at 100x, a quarter of an hour: memory and processor time
	CANARYCTL_SOAK=1 $(GO) test ./internal/tui -run '^TestSoak' -v -timeout 30m

bench: ## benchmarks: readers, breaker, ladder, replay, slots, and the rest
	$(GO) test -run '^$$' -bench . -benchmem ./...

bench-rivals: ## canaryctl beside DuckDB on five million requests: 4 GB of disk, a quarter of an hour, wants a quiet machine
	bench/rivals.sh

fuzz: ## every fuzz target for FUZZTIME
	@for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 200x $$pkg || exit 1; \
	  done; \
	done

golden: ## rewrite golden files and the scripts' expected output
	$(GO) test $$(grep -rl 'flag.Bool("update"' --include='*_test.go' . | xargs -n1 dirname | sort -u) -update

PICTURE := bin/canaryctl watch --replay incident-0217 --theme dark
proxy-load: build ## what shadow proxy adds to latency, and whether it leaks; some minutes, wants a quiet machine
	$(GO) run ./examples/proxyload -canaryctl bin/canaryctl

picture: build ## record docs/watch.svg, the picture of the README, in tmux
	$(GO) run ./examples/screencast -size 100x30 -out docs/watch.svg \
	  -title 'canaryctl watch: a canary that hands customers to people is rolled back in its first minute' \
	  -keys 'Space:0.5 Home:2 Right:3 Enter:4 Enter:1 Right:1 Right:0.6 Right:0.6 ]:2 ]:2.5 Enter:4' -- $(PICTURE)

cover: ## coverage by package
	$(GO) test -cover ./...

clean: ## remove what was built
	rm -rf bin dist
