package lint

import (
	"slices"
	"strconv"
	"strings"
)

// room is a folder, with all folders below it that are not rooms themselves.
type room struct {
	dir     string   // "." is the engine, the package at the module's root
	may     []string // the rooms it may import
	tests   []string // the rooms that its tests may import as well
	modules []string // the other modules that it may import; its tests may import any
	all     bool     // may import every room and every module
}

// rooms is the plan of the house. Arrows run down only:
//
//	cmd → internal/cli → server → kuji → internal/odds, internal/plan, internal/look → internal/rules
//	                                     → internal/rules → internal/store
//	                                     → catalog, sampler
//	catalog, chat → internal/document
//	                    → internal/ledger → driver
//	                    → driver/disk → driver, wal → internal/vfs, internal/step
//	                    → driver/memory → driver
//	internal/cli → internal/demo → internal/loadtest → client → proto
//	server → server/internal/redis, server/internal/feeds → server/internal/admission → server/access
//	                                                      → server/internal/message
//	internal/cli, server → internal/disclosure → kuji, catalog
//	internal/cli → internal/simulate → internal/odds, internal/rules, internal/store, catalog
//	internal/cli → internal/cluster → internal/election, server, driver/jetstream, driver/postgres → driver
//	internal/cli → internal/historian → history → kuji
//	internal/cli → sink → kuji, internal/vfs
//	chat → kuji
//
// A new folder takes its place here first.
var rooms = []room{
	{dir: "cmd/kuji", may: []string{"internal/cli"}},
	{dir: "internal/cli", may: []string{"chat", "client", "console", "internal/cluster", "internal/disclosure", "internal/historian", "server", "server/access", ".", "verify", "backup", "catalog", "internal/contract", "history", "sink", "wal", "proto", "examples", "internal/simulate", "internal/demo", "internal/loadtest", "internal/chart", "internal/step", "driver", "driver/jetstream"}, tests: []string{"driver/drivertest", "driver/jetstream/embedded", "internal/election", "internal/kafkatest", "internal/pgtest", "internal/proxy"},
		modules: []string{"connectrpc.com", "github.com/spf13", "github.com/schollz/progressbar/v3", "go.yaml.in/yaml/v4", "golang.org/x", "google.golang.org/protobuf", "go.opentelemetry.io"}},
	{dir: "internal/demo", may: []string{"client", ".", "catalog", "proto", "examples", "internal/contract", "internal/loadtest"},
		modules: []string{"connectrpc.com/connect", "golang.org/x/sync", "google.golang.org/protobuf"}},
	{dir: "internal/loadtest", may: []string{"client", "proto", "internal/chart", "internal/contract"},
		modules: []string{"connectrpc.com/connect", "golang.org/x/sync", "golang.org/x/sys"}},
	{dir: "internal/chart"},
	{dir: "internal/openapi", may: []string{"proto"}, modules: []string{"go.yaml.in/yaml/v4", "google.golang.org/protobuf"}},
	{dir: "internal/disclosure", may: []string{".", "catalog"}, tests: []string{"examples"}},
	{dir: "client", may: []string{"proto", "internal/ulid"}, tests: []string{".", "catalog", "server", "server/access", "internal/proxy"},
		modules: []string{"connectrpc.com/connect", "google.golang.org/protobuf"}},
	{dir: "clients/conformance", tests: []string{"client", "internal/proxy", "proto"}},
	{dir: "clients/conformance/goclient", may: []string{"client", "proto"}, modules: []string{"connectrpc.com/connect", "google.golang.org/protobuf"}},
	{dir: "console", may: []string{"examples"}, tests: []string{".", "internal/cli", "catalog", "driver/drivertest", "proto", "server", "server/access", "history", "internal/historian", "internal/proxy"}},
	{dir: "internal/cluster", may: []string{"internal/election", "internal/contract", "server", ".", "verify", "backup", "proto", "driver", "driver/jetstream", "driver/jetstream/embedded", "driver/postgres", "internal/step", "internal/vfs"}, tests: []string{"catalog", "driver/drivertest", "internal/proxy"},
		modules: []string{"connectrpc.com", "golang.org/x/sys"}},
	{dir: "internal/historian", may: []string{"history", ".", "proto", "internal/step"}, tests: []string{"catalog", "internal/pgtest"}},
	{dir: "internal/election"},
	{dir: "server", may: []string{".", "backup", "catalog", "chat", "internal/contract", "internal/disclosure", "proto", "server/access", "server/internal/admission", "server/internal/message", "server/internal/feeds", "server/internal/redis"}, tests: []string{"verify", "examples", "driver/drivertest"},
		modules: []string{"connectrpc.com", "github.com/prometheus", "golang.org/x/time", "google.golang.org/protobuf"}},
	{dir: "server/internal/redis", may: []string{".", "internal/contract", "proto", "server/access", "server/internal/admission", "server/internal/message"},
		modules: []string{"connectrpc.com/connect", "google.golang.org/protobuf"}},
	{dir: "server/internal/feeds", may: []string{".", "backup", "internal/contract", "proto", "server/access", "server/internal/admission", "server/internal/message"},
		modules: []string{"connectrpc.com/connect"}},
	{dir: "server/internal/message", may: []string{".", "catalog", "chat", "internal/contract", "proto"}, modules: []string{"connectrpc.com/connect", "google.golang.org/protobuf"}},
	{dir: "server/internal/admission", may: []string{".", "internal/contract", "proto", "server/access"}, modules: []string{"connectrpc.com/connect", "golang.org/x/time"}},
	{dir: "server/access", may: []string{".", "catalog", "internal/contract", "proto"},
		modules: []string{"connectrpc.com/connect", "github.com/go-jose/go-jose/v4", "google.golang.org/protobuf"}},
	{dir: ".", may: []string{"view", "internal/odds", "internal/plan", "internal/look", "internal/rules", "internal/store", "internal/ledger", "internal/logged", "internal/format", "driver", "driver/disk", "driver/memory", "catalog", "wal", "internal/vfs", "internal/step", "internal/hook", "internal/ulid"}},
	{dir: "verify", may: []string{".", "internal/logged", "internal/rules", "internal/store", "internal/ledger", "internal/format", "driver", "driver/disk", "catalog", "internal/vfs", "internal/hook"}},
	{dir: "backup", may: []string{".", "verify", "internal/ledger", "driver", "driver/disk", "internal/vfs", "internal/hook"}},
	{dir: "internal/logged", may: []string{"internal/rules", "internal/store", "internal/ledger", "internal/format", "driver"}},
	{dir: "history", may: []string{".", "internal/format"}, tests: []string{"catalog", "internal/pgtest"},
		modules: []string{"github.com/jackc/pgx/v5", "github.com/ncruces/go-sqlite3"}},
	{dir: "sink", may: []string{".", "internal/vfs", "internal/step"}, tests: []string{"internal/kafkatest"},
		modules: []string{"github.com/twmb/franz-go"}},
	{dir: "chat", may: []string{".", "catalog", "internal/document", "internal/ulid"}, tests: []string{"verify"},
		modules: []string{"github.com/clipperhouse/uax29/v2", "github.com/coregx/ahocorasick", "go.yaml.in/yaml/v4", "golang.org/x/text"}},
	{dir: "internal/ledger", may: []string{"driver", "internal/format", "internal/step"}, tests: []string{"driver/drivertest"}},
	{dir: "internal/rules", may: []string{"view", "internal/store", "internal/format", "catalog", "sampler"}, tests: []string{"internal/odds", "internal/plan", "internal/look", "examples"}},
	{dir: "view", may: []string{"catalog"}},
	{dir: "internal/odds", may: []string{"view", "internal/rules", "internal/store", "catalog"}},
	{dir: "internal/plan", may: []string{"view", "internal/odds", "internal/rules", "catalog"}},
	{dir: "internal/look", may: []string{"view", "internal/rules", "internal/store", "catalog"}},
	{dir: "internal/simulate", may: []string{"view", "internal/odds", "internal/rules", "internal/store", "catalog"}, tests: []string{"examples"}},
	{dir: "internal/store", may: []string{"internal/format"}, modules: []string{"golang.org/x/text"}},
	{dir: "catalog", may: []string{"internal/document", "internal/format"}, tests: []string{"examples"},
		modules: []string{"go.yaml.in/yaml/v4", "github.com/google/jsonschema-go"}},
	{dir: "sampler"},
	{dir: "wal", may: []string{"internal/vfs", "internal/step", "internal/hook"}, modules: []string{"golang.org/x/sys"}},
	{dir: "driver"},
	{dir: "driver/drivertest", may: []string{"driver", "internal/step", "internal/hook"}},
	{dir: "driver/disk", may: []string{"driver", "wal", "internal/format", "internal/vfs", "internal/step", "internal/hook"}, tests: []string{"driver/drivertest"}},
	{dir: "driver/memory", may: []string{"driver"}, tests: []string{"driver/drivertest"}},
	{dir: "driver/jetstream", may: []string{"driver"}, tests: []string{"driver/drivertest", "driver/jetstream/embedded", "internal/proxy"},
		modules: []string{"github.com/nats-io/nats.go"}},
	{dir: "driver/postgres", may: []string{"driver"}, tests: []string{"driver/drivertest", "internal/pgtest", "internal/proxy"},
		modules: []string{"github.com/jackc/pgx/v5"}},
	{dir: "driver/jetstream/embedded", may: []string{"internal/vfs"}, tests: []string{"internal/proxy"}, modules: []string{"github.com/nats-io"}},
	{dir: "internal/document", modules: []string{"go.yaml.in/yaml/v4"}},
	{dir: "internal/enginetest", tests: []string{".", "verify", "backup", "catalog", "driver", "driver/disk", "driver/drivertest", "driver/memory", "examples", "internal/hook", "internal/step", "internal/store", "internal/vfs", "wal"}},
	{dir: "internal/contract", may: []string{"proto"}, modules: []string{"connectrpc.com/connect", "google.golang.org/protobuf"}},
	{dir: "internal/format"},
	{dir: "internal/golden", tests: []string{".", "verify", "backup", "catalog", "driver", "driver/disk", "driver/drivertest", "examples", "history", "internal/hook", "internal/vfs"}},
	{dir: "internal/hook", may: []string{"internal/vfs", "internal/step"}},
	{dir: "internal/kafkatest", modules: []string{"github.com/twmb/franz-go"}},
	{dir: "internal/pgtest", may: []string{"internal/proxy"}, modules: []string{"github.com/jackc/pgx/v5"}},
	{dir: "internal/proxy"},
	{dir: "internal/step"},
	{dir: "internal/ulid"},
	{dir: "internal/vfs", modules: []string{"golang.org/x/sys"}},
	{dir: "proto", modules: []string{"connectrpc.com/connect", "google.golang.org/protobuf"}},
	{dir: "examples", may: []string{".", "catalog"}},
	{dir: "examples/streambot", may: []string{".", "catalog", "chat"}, tests: []string{"verify"}},
	{dir: "bench", all: true},
	{dir: "internal/sim", may: []string{".", "verify", "backup", "driver", "driver/drivertest", "catalog", "internal/vfs", "internal/step", "internal/hook", "internal/election"}, tests: []string{"server", "proto", "wal", "examples"}},
	{dir: "internal/lint", modules: []string{"golang.org/x/tools"}},
}

// roomOf returns the room that a folder belongs to, by the longest match.
func roomOf(dir string) (room, bool) {
	var best room
	found := false
	for _, r := range rooms {
		if dir == r.dir || (r.dir != "." && strings.HasPrefix(dir, r.dir+"/")) {
			if !found || len(r.dir) > len(best.dir) {
				best, found = r, true
			}
		}
	}
	return best, found
}

// Imports reports imports that run against the plan, folders that are not in it, and other modules
// that a room may not use.
func Imports(s *Source) []Finding {
	const rule = "Imports"
	home, ok := roomOf(s.Dir())
	if !ok {
		return []Finding{s.finding(rule, s.AST.Package,
			"folder %s has no place in the plan of the house: give it one in internal/lint/imports.go", s.Dir())}
	}
	if home.all {
		return nil
	}
	var found []Finding
	for _, spec := range s.AST.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has checked it
		}
		if msg := importBreach(s, home, target); msg != "" {
			found = append(found, s.finding(rule, spec.Pos(), "%s", msg))
		}
	}
	return found
}

// importBreach says what is wrong with an import, "" if nothing is.
func importBreach(s *Source, home room, target string) string {
	dir, inModule := projectDir(target)
	if !inModule {
		standard := !strings.Contains(strings.SplitN(target, "/", 2)[0], ".")
		if standard || s.Test || slices.ContainsFunc(home.modules, func(m string) bool {
			return target == m || strings.HasPrefix(target, m+"/")
		}) {
			return ""
		}
		return "room " + home.dir + " does without " + target + ": the libraries that a room may use stand in internal/lint/imports.go"
	}
	to, ok := roomOf(dir)
	switch {
	case !ok:
		return "import of " + dir + ", which has no place in the plan of the house"
	case to.dir == home.dir, slices.Contains(home.may, to.dir):
		return ""
	case s.Test && slices.Contains(home.tests, to.dir):
		return ""
	}
	return "room " + home.dir + " must not import room " + to.dir
}

// Core are the packages that programs embed.
var Core = []string{".", "verify", "backup", "client", "driver", "server", "catalog", "sampler", "wal"}

// heavy are modules that the core does not use, not even through other modules. The drivers of
// replicated logs, histories and traces use them, and only the binary has those.
var heavy = []string{"github.com/nats-io", "github.com/jackc", "github.com/ncruces", "github.com/twmb", "go.opentelemetry.io", "connectrpc.com/otelconnect", "google.golang.org/grpc"}

// Light reports the heavy packages among those that are compiled into a package of the core.
func Light(pkg string, deps []string) []Finding {
	var found []Finding
	for _, dep := range deps {
		if slices.ContainsFunc(heavy, func(m string) bool { return dep == m || strings.HasPrefix(dep, m+"/") }) {
			found = append(found, Finding{Rule: "Light", Path: pkg,
				Message: "needs " + dep + ": what people embed is built without the drivers of replicated logs, without databases and without OpenTelemetry"})
		}
	}
	return found
}

// projectDir returns the folder of a package of this module.
func projectDir(importPath string) (dir string, ok bool) {
	if importPath == Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, Module+"/")
}
