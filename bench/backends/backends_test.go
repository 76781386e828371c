//go:build unix

package backends

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/internal/cli"
	"github.com/kuji-dev/kuji/internal/loadtest"
	"github.com/kuji-dev/kuji/internal/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(asKuji) == "" {
		m.Run()
		return
	}
	cli.Main(time.Now) // how it ends is in its log
}

// options say what to measure.
type options struct {
	repeats, kills, events, players int
	duration, settle                time.Duration
	dir, profile                    string
}

func (o *options) text() string {
	return fmt.Sprintf("medians of %d repeats, and the least and the most; %v each; %d players; %d kills a repeat", o.repeats, o.duration, o.players, o.kills)
}

var (
	whole   options
	really  = flag.Bool("measure", false, "measure; without it, the test only shows that measuring works")
	only    = flag.String("only", "", "measure these backends: names with commas between them")
	steps   = flag.String("steps", "load,takeover,recovery", "do these measurements: names with commas between them")
	program = flag.String("kuji", "", "measure this program instead of building one")
	out     = flag.String("out", "", "write the table into this file, too")
)

func init() {
	flag.IntVar(&whole.repeats, "repeats", 5, "how often to measure everything")
	flag.IntVar(&whole.kills, "kills", 3, "how often to kill a leader in each repeat")
	flag.IntVar(&whole.events, "events", 1_000_000, "how many events to recover")
	flag.IntVar(&whole.players, "players", 20_000, "how many players draw")
	flag.DurationVar(&whole.duration, "duration", 4*time.Second, "how long to measure each shape")
	flag.DurationVar(&whole.settle, "settle", 12*time.Second, "how long servers run before they are measured")
	flag.StringVar(&whole.dir, "dir", "", "make directories in this one, to choose the disk to measure")
	flag.StringVar(&whole.profile, "profile", "", "write CPU profiles of leaders and clients, for each backend and shape, into this directory")
}

// run is one run, and what it has found.
type run struct {
	o        options
	program  string
	build    string
	backends []backend
	values   map[*measure]map[string][]float64
	machine  loadtest.Machine
	log      func(format string, args ...any)
}

func TestBackends(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it starts servers")
	}
	r := &run{o: whole, program: *program, build: "kuji: " + *program, values: map[*measure]map[string][]float64{}, log: t.Logf}
	if !*really {
		r.o = options{repeats: 1, kills: 1, events: 2000, players: 100, duration: 100 * time.Millisecond}
		if *only == "" {
			*only = "disk,postgres-sync" // embedded NATS waits for its elections most of the time
		}
	}
	recovered.name = "recovery of " + grouped(fmt.Sprint(r.o.events)) + " events, s"
	if err := r.find(t); err != nil {
		t.Fatal(err)
	}
	for i := range r.o.repeats {
		for _, b := range r.backends {
			t.Logf("repeat %d of %d: %s", i+1, r.o.repeats, b.name)
			if err := r.measure(t.Context(), b); errors.Is(err, pgtest.ErrNotInstalled) {
				t.Log(err)
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	var text strings.Builder
	if err := r.table(&text); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", text.String())
	if *out != "" {
		if err := errors.Join(os.MkdirAll(filepath.Dir(*out), 0o755), os.WriteFile(*out, []byte(text.String()), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// find finds the program and the backends to measure.
func (r *run) find(t *testing.T) (err error) {
	for _, b := range backends {
		if *only == "" || slices.Contains(strings.Split(*only, ","), b.name) {
			r.backends = append(r.backends, b)
		}
	}
	switch {
	case len(r.backends) == 0:
		return fmt.Errorf("-only %s: expected disk, nats, postgres or postgres-sync", *only)
	case r.program != "":
	case *really:
		// As it is released: with the profile of cmd/kuji, which programs of tests have not.
		r.program = filepath.Join(t.TempDir(), "kuji")
		build := exec.Command("go", "build", "-trimpath", "-o", r.program, "./cmd/kuji")
		build.Dir, build.Env = "../..", append(os.Environ(), "GOFLAGS=")
		if said, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build kuji: %w\n%s", err, said)
		}
		said, err := exec.Command(r.program, "version").Output()
		r.build = strings.TrimSpace(string(said))
		return err
	default:
		r.program, err = os.Executable()
	}
	return err
}

// measure measures all of one backend once.
func (r *run) measure(ctx context.Context, b backend) error {
	for _, s := range []struct {
		name string
		do   func(context.Context, backend) error
	}{{"load", r.load}, {"takeover", r.takeover}, {"recovery", r.recovery}} {
		if !slices.Contains(strings.Split(*steps, ","), s.name) {
			continue
		}
		if err := s.do(ctx, b); err != nil {
			return err
		}
	}
	return nil
}
