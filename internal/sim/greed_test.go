package sim_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

var greed = flag.Int("greed", 2, "how many sixteenths of their full strength the attacks of TestGreed have")

// TestGreed: many small requests at a time that ask for much take a bounded amount of a server's
// memory.
func TestGreed(t *testing.T) {
	if raced {
		t.Skip("the race detector takes several times the memory")
	}
	fill := func(open, element, end string, size int) []byte {
		return []byte(open + strings.Repeat(element+",", (size-len(open)-len(end))/(len(element)+1)-1) + element + end)
	}
	groups := fill(`{"atomic":{"members":[`, `{"grant":{"items":[{},{}]}}`, `]}}`, 2600)
	dryRun := `{"dryRun":true,"yaml":"` + base64.StdEncoding.EncodeToString(boxOf(9<<20)) + `"}`
	for _, attack := range []struct {
		name, path string
		body       []byte
		full       int    // as many at a time
		leave      bool   // all others leave when one has its answer
		catalog    []byte // applied before; nil: the catalog of histories
		most       int64  // bytes of memory, whatever the strength
	}{
		{"grants of no items", "RewardService/Grant", fill(`{"player":"ann","items":[`, `{}`, `]}`, 64<<10), 1500, false, nil, 200 << 20},
		{"batches of groups", "RewardService/Batch", fill(`{"commands":[`, string(groups), `]}`, 250*len(groups)), 64, false, nil, 800 << 20},
		{"batches of no items", "RewardService/Batch", fill(`{"commands":[`, string(fill(`{"grant":{"items":[`, `{}`, `]}}`, 200)), `]}`, 4<<20), 64, false, nil, 800 << 20},
		{"dry runs", "AdminService/ApplyCatalog", []byte(dryRun), 16, true, nil, 1200 << 20},
		{"pages of a pool", "RewardService/GetPool", []byte(`{"pool":"box","entryLimit":10000}`), 64, false, boxOf(600 << 10), 400 << 20},
	} {
		t.Run(attack.name, func(t *testing.T) {
			c := &child{dir: filepath.Join(t.TempDir(), "data")}
			if err := c.start(0); err != nil {
				t.Fatal(err)
			}
			if err := c.apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			if attack.catalog != nil {
				if _, err := c.admin.ApplyCatalog(t.Context(), &kujiv1.ApplyCatalogRequest{Yaml: attack.catalog}); err != nil {
					t.Fatal(err)
				}
			}
			before := c.memory(t)
			answers := c.attack(t, "/kuji.v1."+attack.path, attack.body, max(1, attack.full*(*greed)/16), attack.leave)
			if _, err := c.calls.GetPlayer(t.Context(), &kujiv1.GetPlayerRequest{Player: "nobody"}); connect.CodeOf(err) != connect.CodeNotFound {
				t.Errorf("a read afterwards: %v, want not_found", err)
			}
			grown := c.peak(t) - before
			t.Logf("%d MB more at the peak; answers: %v", grown>>20, answers)
			if grown > attack.most {
				t.Errorf("%d bytes more, want at most %d", grown, attack.most)
			}
			if !c.stop() {
				t.Error("the server did not close well")
			}
		})
	}
}

// boxOf returns a catalog of one pool whose entries take about a number of bytes.
func boxOf(size int) []byte {
	var yaml bytes.Buffer
	yaml.WriteString("kuji: 1\nitems: {gem: {}}\npools:\n  box:\n    entries:\n")
	for i := 0; yaml.Len() < size; i++ {
		fmt.Fprintf(&yaml, "    - id: e%d\n      weight: %d\n      reward: {items: {gem: 1}}\n", i, i%1000+1)
	}
	return yaml.Bytes()
}

// attack sends a request n times at once. It returns how many answers had each HTTP status, 0 for no
// answer.
func (c *child) attack(t *testing.T, path string, body []byte, n int, leave bool) map[int]int {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	answers := make(map[int]int)
	var callers sync.WaitGroup
	for range n {
		callers.Go(func() {
			status := 0
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Content-Type", "application/json")
			res, err := client.Do(req)
			switch {
			case err == nil:
				_, _ = io.Copy(io.Discard, res.Body) // its end does not matter
				res.Body.Close()
				status = res.StatusCode
				if leave && status == http.StatusOK {
					cancel()
				}
			case !errors.Is(err, context.Canceled):
				t.Log(err)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[status]++
		})
	}
	callers.Wait()
	return answers
}

// peak is the most memory that the process has used, in bytes; 0 if unknown.
func (c *child) peak(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
