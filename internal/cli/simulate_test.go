package cli

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/examples"
)

// TestSimulateExample runs the command that docs/how-to/simulate.md begins with, and compares what it prints
// with what the page shows.
func TestSimulateExample(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates many players")
	}
	page, err := os.ReadFile("../../docs/how-to/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(page), "```") // prose, the command, prose, its answer, prose
	if len(parts) != 5 || !strings.HasPrefix(parts[1], "sh\nkuji simulate ") {
		t.Fatalf("docs/how-to/simulate.md no longer shows one command and its answer: %q", parts)
	}
	t.Chdir("../..")
	var out bytes.Buffer
	a := &app{stdout: &out, stderr: &out, getenv: func(string) string { return "" }}
	if code := a.run(t.Context(), strings.Fields(parts[1])[2:]); code != exitOK {
		t.Fatalf("exits with %d\n%s", code, out.Bytes())
	}
	shown := strings.Split(strings.TrimSpace(parts[3]), "\n")
	if len(shown) < 8 {
		t.Fatalf("the page shows %q", shown)
	}
	for _, line := range shown {
		if line != "…" && !strings.Contains(out.String(), line+"\n") {
			t.Errorf("the page shows %q, the command prints\n%s", line, out.Bytes())
		}
	}
}

// TestSimulationPage: the page is well-formed, whatever the catalog's names, and needs nothing from
// elsewhere: no script, no address, no file.
func TestSimulationPage(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, examples.Files); err != nil {
		t.Fatal(err)
	}
	rude := `{kuji: 1, name: "<b>&\"'</b>]]>", items: {a: {}}, pools: {p: {entries: [{id: a, weight: 1, stock: 3, reward: {items: {a: 1}}}, {id: b, weight: 0}]}}}`
	if err := os.WriteFile(filepath.Join(dir, "rude.yaml"), []byte(rude), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"gacha-banner.yaml", "--pool", "banner", "--until", "hoshimi", "--players", "50"},
		{"box-raffle.yaml", "--pool", "box", "--rate", "100", "--draws", "10"},
		{"drop-table.yaml", "--pool", "chest", "--count", "5", "--players", "20"},
		{"collection.yaml", "--pool", "secret", "--until", "white-stag"}, // where nobody can draw
		{"campaign.yaml", "--pool", "splash", "--days", "31", "--codes", "ten-percent=100"},
		{"rude.yaml", "--pool", "p", "--players", "1", "--draws", "1"},
	} {
		file := filepath.Join(dir, "page.html")
		var out bytes.Buffer
		a := &app{stdout: &out, stderr: &out, getenv: func(string) string { return "" }}
		args[0] = filepath.Join(dir, args[0])
		if code := a.run(t.Context(), append([]string{"simulate", "--html", file}, args...)); code != exitOK {
			t.Fatalf("%v exits with %d\n%s", args, code, out.Bytes())
		}
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(page, []byte(dir)) || !bytes.Contains(page, []byte(filepath.Base(args[0]))) {
			t.Errorf("%v: the page tells the catalog's folder, or not its name", args)
		}
		plots := 0
		d := xml.NewDecoder(bytes.NewReader(page))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v: %v", args, err)
			}
			e, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			switch e.Name.Local {
			case "svg":
				plots++
			case "script", "link", "img", "iframe", "object", "image", "use", "a", "b":
				t.Errorf("%v: the page has an element %s", args, e.Name.Local)
			}
			for _, attr := range e.Attr {
				if attr.Name.Local != "xmlns" && strings.Contains(attr.Value, "//") || strings.Contains(attr.Value, "NaN") || strings.Contains(attr.Value, "Inf") {
					t.Errorf("%v: <%s %s=%q>", args, e.Name.Local, attr.Name.Local, attr.Value)
				}
			}
		}
		if plots == 0 || bytes.Contains(page, []byte("@import")) || bytes.Contains(page, []byte("url(")) || bytes.Contains(page, []byte("ZgotmplZ")) {
			t.Errorf("%v: %d plots in\n%s", args, plots, page)
		}
	}
}

// TestSimulationNames: the page has names in a language in place of ids, the rarest first; what a terminal and scripts
// get keeps the ids.
func TestSimulationNames(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, examples.Files); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := &app{stdout: &out, stderr: &out, getenv: func(string) string { return "" }}
	file := filepath.Join(dir, "page.html")
	args := []string{"simulate", filepath.Join(dir, "quests.yaml"), "--pool", "mine", "--players", "20", "--draws", "40", "--rate", "100", "--until", "gem", "--html", file, "--language", "de", "--progress", "login=1/day"}
	if code := a.run(t.Context(), args); code != exitOK {
		t.Fatalf("exits with %d\n%s", code, out.Bytes())
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Simulation of Bergwerk", "Aufträge (quests.yaml)", "Erz ×1–3", "Until Edelstein", "Bis morgen"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if gem, ore := strings.Index(string(page), "<td>Edelstein</td>"), strings.Index(string(page), "<td>Erz ×1–3</td>"); gem < 0 || ore < gem {
		t.Errorf("what is rare stands at %d, what is common at %d", gem, ore)
	}
	if !strings.Contains(out.String(), "mine") || strings.Contains(out.String(), "Bergwerk") {
		t.Errorf("the terminal shows\n%s", out.String())
	}
}
