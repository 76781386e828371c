// Package proto holds Kuji's API contract, kuji/v1, as Protocol Buffers with
// the Go code generated from it next to it. Nothing written by hand belongs
// here but the contract itself.
package proto

import _ "embed"

// OpenAPI is the contract as OpenAPI 3.1, in JSON, for those who call it as JSON over HTTP.
//
//go:embed openapi.json
var OpenAPI []byte

//go:generate sh -c "go tool -modfile=../tools/go.mod buf lint && go tool -modfile=../tools/go.mod buf generate"
