package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// starts is a data directory that servers start with, one after the other.
type starts struct {
	t    *testing.T
	data string
	log  bytes.Buffer // of the newest start
}

func catalogNamed(t *testing.T, name string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Parse([]byte("{kuji: 1, name: " + name + ", items: {gem: {}}, pools: {p: {entries: [{id: a, weight: 1}]}}}"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// start starts with a file of this name, and then applies those by hand. It returns the version that
// was in force meanwhile, or why the server did not start.
func (s *starts) start(f catalogFlags, file string, byHand ...string) (version uint64, name string, err error) {
	s.t.Helper()
	s.log.Reset()
	f.catalog, f.realm = file+".yaml", "default"
	start := &catalogStart{app: &app{}, f: &serveFlags{storeFlags: storeFlags{data: s.data}, catalogFlags: f}, c: catalogNamed(s.t, file), log: slog.New(slog.NewJSONHandler(&s.log, nil))}
	if err := start.before(s.t.Context()); err != nil {
		return 0, "", err
	}
	engine, err := kuji.Open(s.data, kuji.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if err := start.apply(s.t.Context(), engine); err != nil {
		return 0, "", err
	}
	realm, err := engine.Realm("default")
	if err != nil {
		return 0, "", err
	}
	v, err := realm.Catalogs().InForce(s.t.Context())
	if err != nil {
		return 0, "", err
	}
	for _, other := range byHand {
		if _, err := realm.Apply(s.t.Context(), catalogNamed(s.t, other)); err != nil {
			return 0, "", err
		}
	}
	return v.Version, v.Catalog.Name, nil
}

// TestCatalogAtStart: a restart applies a file that has changed, undoes nothing that was applied by
// hand, and does not choose if both have changed.
func TestCatalogAtStart(t *testing.T) {
	s := &starts{t: t, data: filepath.Join(t.TempDir(), "data")}
	must := func(f catalogFlags, file string, version uint64, name, logged string, byHand ...string) {
		t.Helper()
		v, n, err := s.start(f, file, byHand...)
		if err != nil || v != version || n != name || !strings.Contains(s.log.String(), logged) || logged == "" && s.log.Len() > 0 {
			t.Errorf("%s: version %d %s, %v, want %d %s; logged %s", file, v, n, err, version, name, s.log.String())
		}
		for line := range strings.Lines(s.log.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("the log has the line %s", line)
			}
		}
	}
	refused := func(f catalogFlags, file string, want ...string) {
		t.Helper()
		_, _, err := s.start(f, file)
		if _, ok := errors.AsType[refusedError](err); !ok {
			t.Errorf("%s: %v, want a refusal", file, err)
			return
		}
		for _, text := range want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%v, want %q in it", err, text)
			}
		}
	}
	applied, stays := `"msg":"catalog applied"`, `"msg":"the catalog in force is not that of the file, and stays`
	must(catalogFlags{}, "one", 1, "one", applied)
	must(catalogFlags{}, "one", 1, "one", "")
	must(catalogFlags{}, "two", 2, "two", applied)
	must(catalogFlags{}, "one", 3, "one", applied, "hand") // the file was put back
	must(catalogFlags{}, "one", 4, "hand", stays)
	must(catalogFlags{}, "one", 4, "hand", "has not changed")
	refused(catalogFlags{}, "three", "three.yaml", "since it was version 3", "version 4 is in force since 20", "--catalog-over 4", "kuji catalog export")
	refused(catalogFlags{catalogOver: 3}, "three", "both have changed")
	must(catalogFlags{}, "hand", 4, "hand", "") // the file is brought up to date
	must(catalogFlags{}, "three", 5, "three", applied, "hand")
	must(catalogFlags{catalogOver: 6}, "four", 7, "four", applied, "hand", "four") // somebody went there and back
	must(catalogFlags{catalogOver: 6}, "five", 10, "five", applied, "hand")

	// Somebody edits the file, applies it, and then takes it back or applies another one.
	must(catalogFlags{}, "hand", 11, "hand", "")
	must(catalogFlags{}, "six", 12, "six", applied)
	must(catalogFlags{}, "six", 12, "six", "", "edited", "six")
	must(catalogFlags{}, "edited", 14, "six", "the file is version 13")
	must(catalogFlags{}, "edited", 14, "six", "has not changed")
	must(catalogFlags{}, "six", 14, "six", "", "edited", "hand")
	must(catalogFlags{}, "edited", 16, "hand", "the file is version 15")
	refused(catalogFlags{}, "seven", "since it was version 15", "version 16 is in force since 20")

	// A file that cannot be read, or is not there, says nothing: what is in force stays.
	seen := filepath.Join(s.data, "catalogs", "default")
	for _, content := range []string{"", "x", "1 abcd\n", strings.Repeat("1", 300)} {
		if err := os.WriteFile(seen, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		must(catalogFlags{}, "five", 16, "hand", "nobody knows which of the two is newer")
		if strings.Count(s.log.String(), "\n") != 1 || !strings.Contains(s.log.String(), "default cannot be read: ") || strings.Contains(s.log.String(), "before") {
			t.Errorf("%q was read: %s", content, s.log.String())
		}
	}
	if err := os.RemoveAll(filepath.Dir(seen)); err != nil {
		t.Fatal(err)
	}
	must(catalogFlags{}, "six", 16, "hand", "nobody knows")
	refused(catalogFlags{}, "seven", "since a server saw it last")
	must(catalogFlags{catalogOver: 16}, "seven", 17, "seven", applied)
}
