//go:build unix

package history

import (
	"bufio"
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
)

// TestFailBetweenStatements: whichever statement fails, and however often, every event is there once
// in the end.
func TestFailBetweenStatements(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it has no goroutines of its own to watch")
	}
	for name, target := range targets(t) {
		t.Run(name, func(t *testing.T) {
			_, r := realm(t, t.TempDir(), kuji.Options{})
			load(t, r, 1, 40)
			recs := all(t, r)
			target := target(t)
			failure, kinds := errors.New("the connection is lost"), map[string]bool{}
			every := map[string]int{"sqlite": 1, "postgres": 6}[name]
			for n := 0; ; n += every {
				h := openTest(t, target)
				h.most = 8
				left := n
				h.failpoint = func(sql string) error {
					kinds[strings.Join(strings.Fields(sql)[:1], "")] = true
					if left--; left < 0 {
						return failure
					}
					return nil
				}
				err := h.Run(t.Context(), of(recs))
				if err := h.Close(); err != nil {
					t.Fatal(err)
				}
				if err == nil {
					break
				}
				if !errors.Is(err, failure) {
					t.Fatalf("statement %d: %v", n, err)
				}
			}
			for _, kind := range []string{"BEGIN", "UPDATE", "INSERT", "COMMIT"} {
				if !kinds[kind] {
					t.Errorf("no %s was tried: %v", kind, kinds)
				}
			}
			same(t, openTest(t, target), recs)
		})
	}
}

// runChild follows the events in a file, and says so before each one, until it is killed.
func runChild(file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	var recs []kuji.Record
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&recs); err != nil {
		panic(err)
	}
	h, err := Open(context.Background(), os.Getenv("KUJI_HISTORY_TARGET"), "test", Options{})
	if err != nil {
		panic(err)
	}
	h.most = 4
	h.failpoint = func(sql string) error {
		fmt.Print(".")
		return nil
	}
	if err := h.Run(context.Background(), of(recs)); err != nil {
		panic(err)
	}
	fmt.Print("!")
}

// TestKill kills a process that writes a history, again and again, until one comes to the end. Then
// every event is there once.
func TestKill(t *testing.T) {
	_, r := realm(t, t.TempDir(), kuji.Options{})
	load(t, r, 1, 150)
	recs := all(t, r)
	var data bytes.Buffer // gob, for ids that are not text
	if err := gob.NewEncoder(&data).Encode(recs); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(file, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range targets(t) {
		t.Run(name, func(t *testing.T) {
			target, kills := target(t), 0
			for done := false; !done; {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), "KUJI_HISTORY_CHILD="+file, "KUJI_HISTORY_TARGET="+target)
				cmd.Stderr = os.Stderr
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				in := bufio.NewReader(out)
				for left := 1 + rand.IntN(80); left > 0 && !done; left-- { // statements
					b, err := in.ReadByte()
					if err != nil {
						t.Fatalf("the child ended by itself: %v", err)
					}
					done = b == '!'
				}
				if !done {
					kills++
					_ = cmd.Process.Kill()
				}
				_, _ = io.Copy(io.Discard, in)
				_ = cmd.Wait()
			}
			if kills == 0 {
				t.Error("nothing was killed")
			}
			t.Log(kills, "kills")
			same(t, openTest(t, target), recs)
		})
	}
}
