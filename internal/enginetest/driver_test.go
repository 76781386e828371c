package enginetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/verify"
)

var testKey = [32]byte{1}

// openAt opens an engine at a node of a shared driver, and its realm "test".
func openAt(t *testing.T, s *drivertest.Shared, node int, o kuji.Options) (*kuji.Engine, *kuji.Realm) {
	t.Helper()
	o.Driver, o.Key = s.Node(node), testKey
	e, err := kuji.Open("", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() }) // tests that care close it themselves
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	return e, r
}

// TestDriverOptions: a driver comes without a directory and with a key.
func TestDriverOptions(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	_, err := kuji.Open("data", kuji.Options{Driver: s.Node(0), Key: testKey})
	wantCode(t, err, kuji.CodeInvalid)
	_, err = kuji.Open("", kuji.Options{Driver: s.Node(0)})
	wantCode(t, err, kuji.CodeInvalid)
	_, err = kuji.Open(t.TempDir(), kuji.Options{Follow: true})
	wantCode(t, err, kuji.CodeInvalid)
	_, err = verify.Driver(s.Node(0), "No realm", verify.Options{Keys: [][32]byte{testKey}})
	wantCode(t, err, kuji.CodeInvalid)
	if _, err := verify.Driver(s.Node(0), "none", verify.Options{Keys: [][32]byte{testKey}}); err == nil {
		t.Error("a realm that is not there passes for good")
	}
}

// TestDeposed: a node that another one has taken the realm over from acknowledges nothing more, and
// says so; what it had acknowledged is there. The other one proves both epochs.
func TestDeposed(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	_, first := openAt(t, s, 1, kuji.Options{})
	if _, err := first.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	draw := kuji.Draw{ID: "1", Player: "ann", Pool: "paid", Count: 2}
	res := do(t, first, draw)
	e, second := openAt(t, s, 2, kuji.Options{})
	_, err := first.Do(t.Context(), kuji.Draw{ID: "2", Player: "bob", Pool: "free"})
	wantCode(t, err, kuji.CodeUnknownOutcome)
	_, err = first.Do(t.Context(), kuji.Draw{ID: "3", Player: "bob", Pool: "free"})
	wantCode(t, err, kuji.CodeNotLeader)
	wantCode(t, first.Err(), kuji.CodeNotLeader)
	if got := do(t, second, draw); !got.Replayed || got.Receipt != res.Receipt {
		t.Errorf("the next leader answers %+v, want %+v", got, res)
	}
	if got := do(t, second, kuji.Draw{ID: "2", Player: "bob", Pool: "free"}); got.Replayed {
		t.Errorf("what the deposed node did not log was carried out: %+v", got)
	}
	if got := items(t, first, "ann"); got["sword"] != 2 {
		t.Errorf("at the deposed node ann holds %v", got)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := verify.Driver(s.Node(3), "test", verify.Options{Keys: [][32]byte{testKey}})
	if err != nil || len(rep.Epochs) != 2 || !rep.Epochs[0].Revealed || !rep.Epochs[1].Revealed {
		t.Errorf("%+v, %v", rep, err)
	}
}

// TestLostKey: without the key, an epoch that a crash ended is lost, and named.
func TestLostKey(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	openAt(t, s, 1, kuji.Options{})
	for _, key := range [][32]byte{testKey, {2}} {
		rep, err := verify.Driver(s.Node(2), "test", verify.Options{Keys: [][32]byte{key}})
		if err != nil || len(rep.Epochs) != 1 || rep.Epochs[0].Lost != (key != testKey) {
			t.Errorf("%+v, %v", rep.Epochs, err)
		}
	}
	// While the key is being changed, the next leader has both, and reveals what the old one sealed.
	rep, err := verify.Driver(s.Node(2), "test", verify.Options{Keys: [][32]byte{testKey, [32]byte{2}}})
	if err != nil || rep.Epochs[0].Lost {
		t.Errorf("with both keys: %+v, %v", rep.Epochs, err)
	}
	e, err := kuji.Open("", kuji.Options{Driver: s.Node(3), Key: [32]byte{2}, OldKeys: [][32]byte{testKey}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close() // as after a crash
	r, err := e.Realm("test")
	if err != nil || r.Stats().SeedsErr != nil {
		t.Fatalf("with both keys: %v, %v", err, r.Stats().SeedsErr)
	}
	rep, err = verify.Driver(s.Node(2), "test", verify.Options{Keys: [][32]byte{[32]byte{2}}})
	if err != nil || len(rep.Epochs) != 2 || !rep.Epochs[0].Revealed || rep.Epochs[1].Lost {
		t.Errorf("with the new key alone: %+v, %v", rep.Epochs, err)
	}
}

// TestPayloadsAreTrimmed: the files of payloads go with the entries that name them, and never while
// a reader may need them.
func TestPayloadsAreTrimmed(t *testing.T) {
	s := drivertest.NewShared(drivertest.SharedOptions{})
	o := kuji.Options{TrimLog: true}
	e, r := openAt(t, s, 1, o)
	if _, err := r.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	payloads := func() (names []string) {
		t.Helper()
		d := s.Node(9)
		kept, err := d.Open(t.Context(), "test", driver.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		files, err := kept.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f.Name, ".payload") {
				names = append(names, f.Name)
			}
		}
		return names
	}
	var first string
	gone := false
	for round := range 40 {
		codes := make([]string, 1500) // one event
		for i := range codes {
			codes[i] = fmt.Sprintf("%060d-%d", i, round)
		}
		if _, err := r.Codes().Import(t.Context(), "list", codes); err != nil {
			t.Fatal(err)
		}
		names := payloads()
		if first == "" {
			if len(names) == 0 {
				t.Fatal("so large a batch fits into an entry")
			}
			first = names[0]
		}
		snapshot(t, r)
		if err := r.Stats().SnapshotErr; err != nil {
			t.Fatal(err)
		}
		if gone = len(payloads()) == 0 || payloads()[0] != first; gone {
			break
		}
	}
	if !gone {
		t.Error("the first payload is never removed")
	}
	want, position, err := r.StateHash(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := verify.Driver(s.Node(3), "test", verify.Options{Keys: [][32]byte{testKey}}); err != nil || rep.StateHash != want || rep.From == 0 {
		t.Errorf("verified from %d: state %x, want %x: %v", rep.From, rep.StateHash, want, err)
	}
	_, r = openAt(t, s, 4, o)
	if got, _, err := r.StateHash(t.Context()); err != nil || got != want {
		t.Errorf("opened with state %x, want that of %d, %x: %v", got, position, want, err)
	}
}
