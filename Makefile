# Thin names for commands that stand elsewhere; nothing here is needed to work
# on Kuji. `go run ./cmd/kuji demo` and `go test ./...` are the two to know.

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
generate: ## write generated files anew
	go generate ./...

.PHONY: bench
bench: ## every benchmark, once through
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: ci
ci: ## everything that a change must pass
	.ci/run
