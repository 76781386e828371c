# Short names for commands. You need none of them to work on Kuji. The two commands
# to know are `go run ./cmd/kuji demo` and `go test ./...`.

.DEFAULT_GOAL := help

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## draws over the network, a SIGKILL in the middle, and a check of every acknowledgement
	go run ./cmd/kuji demo

.PHONY: test
test: ## the test command
	go test ./...

.PHONY: race
race: ## the same with the race detector (needs cgo)
	go test -race ./...

.PHONY: lint
lint: ## vet, staticcheck and the house rules
	go vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...
	go test ./internal/lint

.PHONY: generate
generate: ## write the generated files again
	go generate ./...

# Which benchmarks to run, and how: make bench BENCH=Draw COUNT=10
BENCH ?= .
COUNT ?= 6
BENCHTIME ?= 1s
PACKAGES ?= ./...
MEASURE = go test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) -count $(COUNT) -timeout 0 $(PACKAGES)
RESULTS := bench/results/$(shell date -u +%Y-%m-%d)-$(shell git rev-parse --short HEAD 2>/dev/null).txt
# What they are compared with: the last baseline by name, so a release's rather than the unreleased.
BASELINE ?= $(lastword $(sort $(wildcard bench/results/baseline-*.txt)))
# What make baseline records: make baseline NAME=v1.0.0
NAME ?= unreleased

.PHONY: bench
bench: ## every benchmark into bench/results/DATE-COMMIT.txt, compared with the baseline (long)
	mkdir -p bench/results
	$(MEASURE) > $(RESULTS) || (cat $(RESULTS); exit 1)
	go tool -modfile=tools/go.mod benchstat $(if $(BASELINE),baseline=$(BASELINE)) now=$(RESULTS)

.PHONY: baseline
baseline: ## every benchmark into bench/results/baseline-NAME.txt, with which make bench compares (long)
	$(MEASURE) > bench/results/new.txt || (cat bench/results/new.txt; exit 1)
	mv bench/results/new.txt bench/results/baseline-$(NAME).txt

# What the profile measures: the engine in process, and below a server under load.
HOT := DrawHot/store=kuji DrawWide/store=kuji DoAll/.*/store=kuji Atomic/.*/.*/form=group Grant Recovery/.*/.*/store=kuji

.PHONY: profile
profile: ## measure cmd/kuji/default.pgo again, which tells the compiler where time goes (docs/internals/profiling.md)
	dir=$$(mktemp -d) && trap "rm -rf $$dir" EXIT && \
	go test -c -trimpath -pgo=off -o $$dir/bench.test ./bench && go build -trimpath -pgo=off -o $$dir/kuji ./cmd/kuji && \
	for bench in $(HOT); do \
	  (cd bench && $$dir/bench.test -test.run '^$$' -test.bench "$$bench" -test.benchtime 1s -test.cpuprofile "$$dir/$${bench%%/*}.pprof") || exit 1; \
	done && \
	$$dir/kuji bench --players 20000 --profile $$dir && rm $$dir/*-client.pprof && \
	go tool pprof -proto $$dir/*.pprof > $$dir/merged && mv $$dir/merged cmd/kuji/default.pgo

.PHONY: rivals-redis
rivals-redis: ## draws by one Redis client from Kuji and from a Lua script, one after the other, five times
	cd bench/rivals && for i in 1 2 3 4 5; do go test -v -run '^$$' -bench '(Kuji|Redis)/sync=always/shape=(unary|pipeline)/client=go-redis/' -benchtime 2s -timeout 0; done

.PHONY: rivals
rivals: ## Redis, PostgreSQL and Kuji doing the same job over loopback, those that are installed
	cd bench/rivals && go test -v -run '^$$' -bench . -benchtime 2s -timeout 0

.PHONY: peers
peers: ## the log, the sampler and player reads against their rivals, six times, through benchstat (long)
	cd bench/peers && go test -run '^$$' -bench . -benchmem -count 6 ./... > peers.out
	go tool -modfile=tools/go.mod benchstat -col /log bench/peers/peers.out

.PHONY: backends
backends: ## disk, embedded NATS x 3, PostgreSQL and PostgreSQL with a standby, side by side, into bench/results (half an hour; root, for bytes written)
	GOFLAGS=-pgo=off go test ./bench/backends -run 'TestBackends$$' -count=1 -v -timeout 0 -measure -out $(CURDIR)/$(RESULTS:.txt=-backends.txt) $(BACKENDS)

.PHONY: packages
packages: ## the packages of the clients (wheel, npm, jar) into dist/clients, of what is installed here; after make release
	clients/package.sh dist/clients

.PHONY: sim
sim: ## the simulator, the checkers and the crashes of real servers, as long as CI runs them
	go test -count=1 -timeout 10m -v ./internal/sim -seeds 1000 -stocks 4 -histories 600 -served 50 -kills 100 -injections 40 -idle 10000 -greed 16

.PHONY: sabotage
sabotage: ## plant every bug, and see that a test fails for each; prints the table
	go test -count=1 -timeout 120m -v -run 'TestSabotage$$' ./internal/sim -sabotage all

# How long nightly fuzzes each decoder.
FUZZTIME ?= 2m

# How long a cluster of processes runs under faults, and what keeps its log: nats or postgres; nothing: its nodes.
CHAOS ?= 10m
STORE ?=

.PHONY: chaos
chaos: ## a cluster of three processes, and with STORE=postgres or nats what keeps its log: killed, paused, cut off, filled and wiped while clients draw; every answer checked (full disks need root)
	go test -count=1 -timeout 60m -v -run 'TestChaos$$' ./internal/cli -chaos $(CHAOS) -chaosseed $$(date +%Y%m%d) -chaosstore '$(STORE)'

.PHONY: nightly
nightly: sabotage chaos ## every planted bug, ten minutes of chaos with each store, the simulator for long, every package built twice from nothing, the race detector on everything, kills, power cuts and failing system calls by the hundred (they need root, loop devices and strace), a real Kafka (mvn, java), real Redis clients (npm, pip, mvn), fuzzing
	$(MAKE) chaos STORE=nats
	$(MAKE) chaos STORE=postgres
	for target in linux/arm64 darwin/arm64 windows/amd64; do GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0 go build -o /dev/null ./... || exit 1; done
	GOARCH=386 CGO_ENABLED=0 go vet ./...
	for dir in bench/peers bench/rivals tools/release tools/deploy; do (cd $$dir && go vet ./...) || exit 1; done
	for dir in tools/release tools/deploy; do (cd $$dir && go test -count=1 -timeout 20m -v .) || exit 1; done
	dir=$$(mktemp -d) && (cd tools/release && go run . -repo ../.. -dist $$dir/dist -check) && rm -r $$dir
	go generate ./... && git diff --exit-code
	proto/check.sh
	dir=$$(mktemp -d) && clients/install.sh $$dir python typescript java deno && clients/check.sh $$dir && rm -r $$dir
	go test -race -count=1 -timeout 60m ./...
	go test -count=1 -timeout 120m -v ./internal/sim -first $$(date +%Y%m%d)00000 -seeds 20000 -stocks 4 -histories 8000 -served 2000 -kills 2000 -injections 1000 -idle 10000 -greed 16
	go test -count=1 -timeout 30m -v ./internal/enginetest -run 'TestManyDue' -due 1000000
	go test -count=1 -timeout 60m -v ./server -run 'TestRawStreams$$' -rawfirst $$(date +%Y%m%d)00000 -rawstreams 100000
	KUJI_POWERCUTS=200 go test -count=1 -timeout 90m -v -run 'PowerCuts|Kernel' ./wal ./internal/vfs/... ./internal/sim
	if command -v mvn >/dev/null && command -v java >/dev/null; then dir=$$(mktemp -d) && mvn -q -B -f internal/kafkatest/pom.xml dependency:copy-dependencies -DoutputDirectory=$$dir && \
	  KUJI_KAFKA=$$dir go test -count=1 -timeout 10m -v ./sink ./internal/cli -run Kafka && rm -r $$dir; else echo 'left out, no mvn or java: tests with a real Kafka'; fi
	dir=$$(mktemp -d) && server/testdata/redisclients/install.sh $$dir && KUJI_REDIS_CLIENTS=$$dir go test -count=1 -timeout 20m -v ./server -run 'TestRedisClients$$' && rm -r $$dir
	grep -rE '^func Fuzz' --include='*_test.go' . | sed -E 's|^(.*)/[^/]*:func (Fuzz[A-Za-z]*).*|\1 \2|' | sort | while read -r dir target; do \
	  go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" || exit 1; done

# For which platforms make release builds: make release TARGETS=linux/amd64,darwin/arm64 (default: all)
TARGETS ?=

.PHONY: release
release: ## everything that a release publishes, of HEAD, into dist: binaries, packages, image, chart, SBOM, checksums, provenance
	cd tools/release && go run . -repo ../.. $(if $(TARGETS),-targets $(TARGETS))

.PHONY: manifests
manifests: ## write deploy/kubernetes from the Helm chart
	cd tools/deploy && go run .

.PHONY: ci
ci: ## everything that a change must pass
	.ci/run
