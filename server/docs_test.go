package server_test

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

// rows returns the rows of a page of the reference whose first cell matches, as cells.
func rows(t *testing.T, page, first string) [][]string {
	t.Helper()
	doc, err := os.ReadFile("../docs/reference/" + page)
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile("^" + first)
	var out [][]string
	for line := range strings.Lines(string(doc)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if match.MatchString(cells[0]) {
			out = append(out, cells)
		}
	}
	return out
}

// TestDocumentedErrors compares the tables of docs/reference/api.md with the code.
func TestDocumentedErrors(t *testing.T) {
	statuses := map[string]bool{}
	for _, row := range rows(t, "api.md", "`STATUS_") {
		statuses[row[0]] = true
	}
	for _, st := range statusesOf()[1:] {
		name := "`" + server.StatusProto(st).String() + "`"
		if !statuses[name] {
			t.Errorf("%s is not documented", name)
		}
		delete(statuses, name)
	}
	if len(statuses) > 0 {
		t.Errorf("documented, but no status of the engine: %v", statuses)
	}
	reasons := map[string]string{}
	for _, row := range rows(t, "api.md", "`REASON_") {
		reasons[row[0]] = row[1]
	}
	for n, name := range kujiv1.Reason_name {
		if _, ok := reasons["`"+name+"`"]; !ok && n != 0 {
			t.Errorf("%s is not documented", name)
		}
	}
	f := newServer(t, server.Options{})
	for code, want := range server.CodeAnswers() {
		err := f.server.ConnectError(&kuji.Error{Code: code}, &kujiv1.DrawRequest{RequestId: "1"})
		name := "`" + detail(t, err).GetReason().String() + "`"
		if reasons[name] != "`"+want.String()+"`" {
			t.Errorf("%s is answered with %v, documented as %q", name, want, reasons[name])
		}
	}
}

// TestDocumentedLimits compares the limits of docs/reference/limits.md with the code.
func TestDocumentedLimits(t *testing.T) {
	limits, err := server.WithDefaults(server.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range rows(t, "limits.md", "`[A-Z][A-Za-z]+`") {
		documented[strings.Split(row[0], "`")[1]] = strings.TrimSuffix(row[1], " bytes")
	}
	v := reflect.ValueOf(limits)
	for i := range v.NumField() {
		name, want := v.Type().Field(i).Name, fmt.Sprint(v.Field(i).Interface())
		if documented[name] != want {
			t.Errorf("%s is %s by default, documented as %q", name, want, documented[name])
		}
	}
	for first, want := range map[string]int{
		"request id, player":   kuji.MaxID,
		"draws in one Draw":    kuji.MaxDrawCount,
		"items in one Grant":   kuji.MaxStacks,
		"members of an Atomic": kuji.MaxAtomic,
		"commands of a Batch":  kuji.MaxBatch,
		"draws in one batch":   kuji.MaxBatch,
		"messages in one":      server.MaxMessages,
		"outcomes of one":      server.MaxBatchOutcomes,
		"entries, items":       server.MaxPage,
		"depth of nested":      server.MaxDepth,
		"API key \\|":          access.MaxKeyBytes,
		"realms":               kuji.MaxRealms,
	} {
		row := rows(t, "limits.md", strings.TrimSuffix(first, " \\|"))
		if len(row) != 1 || !regexp.MustCompile(fmt.Sprintf(`^%d\b`, want)).MatchString(row[0][1]) {
			t.Errorf("%s: documented as %v, want %d", first, row, want)
		}
	}
	if catalog.MaxID != kuji.MaxID {
		t.Errorf("ids of the catalog have %d bytes, those of requests %d: the table says they are the same", catalog.MaxID, kuji.MaxID)
	}
}
