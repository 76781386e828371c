// Package proto holds Kuji's API contract, kuji/v1, as Protocol Buffers with
// the Go code generated from it next to it. Nothing written by hand belongs
// here but the contract itself.
package proto

//go:generate sh -c "go tool -modfile=../tools/go.mod buf lint && go tool -modfile=../tools/go.mod buf generate"
