package sim_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs/powercut"
)

// TestPowerCutsOfServer shuts a real file system down under a server with clients. The next server must
// recover from what is left.
func TestPowerCutsOfServer(t *testing.T) {
	powercut.Each(t, 256<<20, cutServer)
}

func cutServer(t *testing.T, disk *powercut.Disk, cuts int) {
	c := &child{dir: filepath.Join(disk.Dir(), "data"), held: true}
	b := newBook()
	r := rand.New(rand.NewPCG(1, 4))
	for n := range cuts {
		if err := c.start(0); err != nil {
			t.Fatalf("after cut %d: %v", n, err)
		}
		if err := c.apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n%25 == 24 {
			b.settle(t, c)
		}
		load(t, c, b, n, 1+r.Int64N(200), func() {
			if err := disk.Cut(n%2 == 0); err != nil {
				t.Error(err)
			}
			c.kill()
		})
		if err := disk.Restart(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			return
		}
	}
	b.endWell(t, c)
	t.Logf("%d power cuts, %d requests", cuts, len(b.asked))
}
