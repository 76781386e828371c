package vfs_test

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
)

// dump writes a file system as one string: each path with its contents, runs
// of bytes shortened to "x*512".
func dump(t testing.TB, fsys vfs.FS) string {
	t.Helper()
	return dumpBelow(t, fsys, "/")
}

// dumpBelow does so as if dir were the root.
func dumpBelow(t testing.TB, fsys vfs.FS, root string) string {
	t.Helper()
	var b strings.Builder
	var walk func(dir string)
	walk = func(dir string) {
		names, err := fsys.List(path.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			full := path.Join(dir, name)
			info, err := fsys.Stat(path.Join(root, full))
			if err != nil {
				t.Fatal(err)
			}
			if info.IsDir() {
				fmt.Fprintf(&b, "%s/\n", full)
				walk(full)
				continue
			}
			f, err := fsys.Open(path.Join(root, full))
			if err != nil {
				t.Fatal(err)
			}
			p := make([]byte, info.Size())
			if _, err := f.ReadAt(p, 0); err != nil && err != io.EOF {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s: %s\n", full, runs(string(p)))
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	walk("/")
	return b.String()
}

func runs(s string) string {
	var parts []string
	for i := 0; i < len(s); {
		j := i
		for j < len(s) && s[j] == s[i] {
			j++
		}
		c := s[i : i+1]
		if s[i] == 0 {
			c = "0"
		}
		parts = append(parts, fmt.Sprintf("%s*%d", c, j-i))
		i = j
	}
	return strings.Join(parts, " ")
}

// states returns the dumps of all crash states, and fails when there may be
// more than limit.
func states(t testing.TB, m *vfs.Mem, unordered bool) map[string]bool {
	t.Helper()
	const limit = 1 << 16
	set := make(map[string]bool)
	n := 0
	for disk := range m.CrashStates(limit, 1, unordered) {
		set[dump(t, disk)] = true
		n++
	}
	if n == limit {
		t.Fatal("not all states: there may be too many")
	}
	return set
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

func file(t *testing.T, m *vfs.Mem, name string) vfs.File {
	t.Helper()
	f, err := m.Create(name)
	must(t, err)
	return f
}

// durable returns a Mem with one durable file of n bytes 'o' and its handle.
func durable(t *testing.T, n int) (*vfs.Mem, vfs.File) {
	m := vfs.NewMem()
	f := file(t, m, "f")
	write(t, f, strings.Repeat("o", n), 0)
	must(t, f.Sync())
	must(t, m.SyncDir("/"))
	return m, f
}

// What may survive, told state by state.
func TestCrashStates(t *testing.T) {
	rep := strings.Repeat
	for _, c := range []struct {
		name      string
		unordered bool
		run       func(t *testing.T) *vfs.Mem
		want      []string
	}{
		{"nothing open", false, func(t *testing.T) *vfs.Mem {
			m, _ := durable(t, 600)
			return m
		}, []string{"/f: o*600\n"}},

		{"two sectors overwritten, any subset", false, func(t *testing.T) *vfs.Mem {
			m, f := durable(t, 1024)
			write(t, f, rep("n", 1024), 0)
			return m
		}, []string{"/f: n*1024\n", "/f: n*512 o*512\n", "/f: o*1024\n", "/f: o*512 n*512\n"}},

		{"one sector, every state since the sync", false, func(t *testing.T) *vfs.Mem {
			m, f := durable(t, 512)
			write(t, f, rep("1", 10), 0)
			write(t, f, rep("2", 10), 5)
			return m
		}, []string{"/f: 1*10 o*502\n", "/f: 1*5 2*10 o*497\n", "/f: o*512\n"}},

		{"growth: size and sectors independent", false, func(t *testing.T) *vfs.Mem {
			m, f := durable(t, 0)
			write(t, f, rep("n", 700), 0)
			return m
		}, []string{"/f: \n", "/f: 0*512\n", "/f: n*512\n",
			"/f: 0*700\n", "/f: n*512 0*188\n", "/f: 0*512 n*188\n", "/f: n*700\n"}},

		{"a sector is not torn by an append", false, func(t *testing.T) *vfs.Mem {
			m, f := durable(t, 500)
			write(t, f, rep("n", 12), 500)
			return m
		}, []string{"/f: o*500\n", "/f: o*500 0*12\n", "/f: o*500 n*12\n"}},

		{"synced data stays", false, func(t *testing.T) *vfs.Mem {
			m, f := durable(t, 0)
			write(t, f, rep("a", 512), 0)
			must(t, f.Sync())
			write(t, f, rep("b", 512), 512)
			return m
		}, []string{"/f: a*512\n", "/f: a*512 0*512\n", "/f: a*512 b*512\n"}},

		{"a truncate may be lost, and so may what it cut off", false, func(t *testing.T) *vfs.Mem {
			m, f := durable(t, 1024)
			must(t, f.Truncate(512))
			return m
		}, []string{"/f: o*512\n", "/f: o*1024\n", "/f: o*512 0*512\n"}},

		{"a truncate that grows has no steps between", false, func(t *testing.T) *vfs.Mem {
			m, f := durable(t, 512)
			must(t, f.Truncate(5000))
			return m
		}, []string{"/f: o*512\n", "/f: o*512 0*4488\n"}},

		{"a synced truncate is for ever", false, func(t *testing.T) *vfs.Mem {
			m, f := durable(t, 1024)
			must(t, f.Truncate(10))
			must(t, f.Sync())
			must(t, f.Truncate(1024))
			must(t, f.Sync())
			return m
		}, []string{"/f: o*10 0*1014\n"}},

		{"create without SyncDir", false, func(t *testing.T) *vfs.Mem {
			m := vfs.NewMem()
			f := file(t, m, "f")
			write(t, f, rep("n", 512), 0)
			must(t, f.Sync())
			return m
		}, []string{"", "/f: n*512\n"}},

		{"SyncDir without Sync", false, func(t *testing.T) *vfs.Mem {
			m := vfs.NewMem()
			write(t, file(t, m, "f"), rep("n", 512), 0)
			must(t, m.SyncDir("/"))
			return m
		}, []string{"/f: \n", "/f: 0*512\n", "/f: n*512\n"}},

		{"directory changes survive in order", false, func(t *testing.T) *vfs.Mem {
			m := vfs.NewMem()
			file(t, m, "a")
			file(t, m, "b")
			must(t, m.Remove("a"))
			return m
		}, []string{"", "/a: \n", "/a: \n/b: \n", "/b: \n"}},

		{"directory changes in any combination", true, func(t *testing.T) *vfs.Mem {
			m := vfs.NewMem()
			file(t, m, "a")
			file(t, m, "b")
			file(t, m, "c")
			must(t, m.Remove("c"))
			return m
		}, []string{"", "/a: \n", "/a: \n/b: \n", "/b: \n", "/a: \n/c: \n", "/a: \n/b: \n/c: \n", "/b: \n/c: \n", "/c: \n"}},

		{"rename is atomic", false, func(t *testing.T) *vfs.Mem {
			m, f := durable(t, 10)
			g := file(t, m, "tmp")
			write(t, g, "x", 0)
			must(t, g.Sync())
			must(t, m.SyncDir("/"))
			must(t, m.Rename("tmp", "f"))
			must(t, f.Close())
			return m
		}, []string{"/f: o*10\n/tmp: x*1\n", "/f: x*1\n"}},

		{"rename is atomic, unordered too", true, func(t *testing.T) *vfs.Mem {
			m, _ := durable(t, 10)
			must(t, m.Rename("f", "g"))
			must(t, m.Rename("g", "h"))
			return m
		}, []string{"/f: o*10\n", "/g: o*10\n", "/h: o*10\n"}},

		{"a name taken again depends on the rename that freed it", true, func(t *testing.T) *vfs.Mem {
			m, _ := durable(t, 10)
			must(t, m.Rename("f", "g"))
			file(t, m, "f")
			return m
		}, []string{"/f: \n/g: o*10\n", "/f: o*10\n", "/g: o*10\n"}},

		{"rename of a file that is not synced", false, func(t *testing.T) *vfs.Mem {
			m := vfs.NewMem()
			write(t, file(t, m, "tmp"), "x", 0)
			must(t, m.Rename("tmp", "f"))
			must(t, m.SyncDir("/"))
			return m
		}, []string{"/f: \n", "/f: 0*1\n", "/f: x*1\n"}},

		{"remove undone brings the data back", false, func(t *testing.T) *vfs.Mem {
			m, f := durable(t, 3)
			must(t, f.Close())
			must(t, m.Remove("f"))
			return m
		}, []string{"", "/f: o*3\n"}},

		{"rename between directories: both, none, either", false, func(t *testing.T) *vfs.Mem {
			m := vfs.NewMem()
			must(t, m.MkdirAll("a"))
			must(t, m.MkdirAll("b"))
			file(t, m, "a/f")
			must(t, m.SyncDir("a"))
			must(t, m.Rename("a/f", "b/f"))
			return m
		}, []string{"/a/\n/a/f: \n/b/\n", "/a/\n/a/f: \n/b/\n/b/f: \n", "/a/\n/b/\n", "/a/\n/b/\n/b/f: \n"}},

		{"SyncDir of one directory only", false, func(t *testing.T) *vfs.Mem {
			m := vfs.NewMem()
			must(t, m.MkdirAll("a"))
			file(t, m, "f")
			file(t, m, "a/f")
			must(t, m.SyncDir("/"))
			return m
		}, []string{"/a/\n/a/f: \n/f: \n", "/a/\n/f: \n"}},

		{"MkdirAll is durable", false, func(t *testing.T) *vfs.Mem {
			m := vfs.NewMem()
			must(t, m.MkdirAll("a/b/c"))
			return m
		}, []string{"/a/\n/a/b/\n/a/b/c/\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := c.run(t)
			before := dump(t, m)
			got := states(t, m, c.unordered)
			slices.Sort(c.want)
			if !slices.Equal(sorted(got), c.want) {
				t.Errorf("got states\n%q\nwant\n%q", sorted(got), c.want)
			}
			if after := dump(t, m); after != before {
				t.Errorf("the running file system changed from\n%s to\n%s", before, after)
			}
			for disk := range m.CrashSamples(50, 7, c.unordered) {
				if d := dump(t, disk); !got[d] {
					t.Errorf("sampled a state that is not possible:\n%s", d)
				}
			}
		})
	}
}

// A disk after a crash is durable as it is, and a file system of its own.
func TestCrashCloneIsDurable(t *testing.T) {
	m, f := durable(t, 1000)
	write(t, f, strings.Repeat("n", 5000), 300)
	for disk := range m.CrashSamples(20, 3, false) {
		want := dump(t, disk)
		if again := dump(t, disk.CrashClone(vfs.Crash{})); again != want {
			t.Fatalf("second crash changed\n%s into\n%s", want, again)
		}
		g, err := disk.OpenWrite("f")
		must(t, err)
		write(t, g, "mine", 0)
		must(t, disk.Remove("f"))
	}
	want := strings.Repeat("o", 300) + strings.Repeat("n", 5000)
	wantFile(t, m, "f", want)
	must(t, f.Sync())
	wantFile(t, m.CrashClone(vfs.Crash{}), "f", want)
}

func TestCrashSamplesBeginWithTheExtremes(t *testing.T) {
	m, f := durable(t, 2000)
	write(t, f, strings.Repeat("n", 100_000), 0)
	var got []string
	for disk := range m.CrashStates(64, 9, false) {
		got = append(got, dump(t, disk))
	}
	if len(got) != 64 {
		t.Fatalf("got %d states, want the limit, 64", len(got))
	}
	if got[0] != "/f: o*2000\n" || got[1] != "/f: n*100000\n" {
		t.Errorf("first two: got %q and %q", clip(got[0]), clip(got[1]))
	}
	distinct := make(map[string]bool)
	for _, d := range got {
		distinct[d] = true
	}
	if len(distinct) < 40 {
		t.Errorf("got %d distinct states of 64", len(distinct))
	}
	i := 0
	for disk := range m.CrashStates(64, 9, false) { // the same seed
		if dump(t, disk) != got[i] {
			t.Fatalf("state %d differs in the second run", i)
		}
		i++
	}
}

func TestCrashEndsTheRun(t *testing.T) {
	m, f := durable(t, 100)
	l, err := m.Lock("/")
	must(t, err)
	must(t, m.SyncDir("/"))
	mp, err := f.Map(100)
	must(t, err)
	disk := m.Crash(vfs.Crash{})

	for what, err := range map[string]error{
		"ReadAt":   second(f.ReadAt(make([]byte, 1), 0)),
		"WriteAt":  second(f.WriteAt(make([]byte, 1), 0)),
		"Sync":     f.Sync(),
		"Truncate": f.Truncate(0),
		"Size":     second(f.Size()),
		"Map":      second(f.Map(1)),
		"Close":    f.Close(),
		"Unlock":   l.Close(),
		"Create":   second(m.Create("x")),
		"Open":     second(m.Open("f")),
		"Remove":   m.Remove("f"),
		"Rename":   m.Rename("f", "g"),
		"MkdirAll": m.MkdirAll("d"),
		"List":     second(m.List("/")),
		"Stat":     second(m.Stat("f")),
		"SyncDir":  m.SyncDir("/"),
		"Lock":     second(m.Lock("/")),
	} {
		wantErr(t, what, err, vfs.ErrCrashed)
	}
	if got := string(mp.Bytes()); got != strings.Repeat("o", 100) {
		t.Errorf("mapping after the crash: got %q", got)
	}
	must(t, mp.Unmap())

	l, err = disk.Lock("/") // a crash releases locks
	must(t, err)
	must(t, l.Close())
	wantFile(t, disk, "f", strings.Repeat("o", 100))
}

func second[T any](_ T, err error) error { return err }

// A killed process leaves its page cache, and nothing more durable than it was.
func TestKillClone(t *testing.T) {
	m, f := durable(t, 512)
	write(t, f, strings.Repeat("n", 512), 0)
	g := file(t, m, "g")
	write(t, g, "unlinked", 0)
	must(t, m.Remove("g"))
	file(t, m, "h")
	_, err := m.Lock("/")
	must(t, err)

	next := m.KillClone()
	if got, want := dump(t, next), dump(t, m); got != want {
		t.Fatalf("got\n%s want\n%s", got, want)
	}
	l, err := next.Lock("/")
	must(t, err)
	must(t, l.Close())
	if got, want := sorted(states(t, next, false)), sorted(states(t, m, false)); !slices.Equal(got, want) {
		t.Fatalf("crash states after the kill:\n%q\nwant\n%q", got, want)
	}
	if got, want := next.Used(), int64(4096); got != want {
		t.Errorf("Used: got %d, want %d", got, want)
	}

	// Each goes its own way.
	nf, err := next.OpenWrite("f")
	must(t, err)
	write(t, nf, "next", 0)
	must(t, nf.Sync())
	must(t, next.Remove("h"))
	wantFile(t, m, "f", strings.Repeat("n", 512))
	wantFile(t, m.CrashClone(vfs.Crash{}), "f", strings.Repeat("o", 512))
	wantFile(t, next.CrashClone(vfs.Crash{}), "f", "next"+strings.Repeat("n", 508))
	_, err = m.Stat("h")
	must(t, err)
	_, err = next.Stat("h")
	wantErr(t, "Stat", err, fs.ErrNotExist)
}

func TestStatesChangedMeanwhile(t *testing.T) {
	m, f := durable(t, 512)
	write(t, f, "n", 0)
	defer func() {
		if recover() == nil {
			t.Error("no panic when the file system changes under CrashStates")
		}
	}()
	for range m.CrashStates(100, 1, false) {
		write(t, f, "1", 1)
	}
}

func BenchmarkCrashClone(b *testing.B) {
	m := vfs.NewMem()
	for _, name := range []string{"000", "001", "002"} {
		f, err := m.Create(name)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.WriteAt(make([]byte, 10_000), 0); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(strings.Repeat("n", 2000)), 10_000); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for i := range b.N {
		m.CrashClone(vfs.Crash{Choose: vfs.Seeded(uint64(i))})
	}
}
