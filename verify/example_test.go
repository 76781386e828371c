package verify_test

import (
	"context"
	"fmt"
	"os"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/verify"
)

// Those who have the data directory of a campaign can compute every draw again, once the engine was closed
// and its seed is in the log.
func ExampleDir() {
	dir, err := os.MkdirTemp("", "kuji")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	engine, err := kuji.Open(dir, kuji.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	realm, err := engine.Realm("default")
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := catalog.Parse([]byte("kuji: 1\nitems: {hat: {}}\npools: {p: {entries: [{id: hat, weight: 1, reward: {items: {hat: 1}}}]}}\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if _, err := realm.Apply(ctx, c); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := realm.Do(ctx, kuji.Draw{ID: "1", Player: "ann", Pool: "p", Count: 3}); err != nil {
		fmt.Println(err)
		return
	}
	if err := engine.Close(); err != nil {
		fmt.Println(err)
		return
	}

	report, err := verify.Dir(dir, "default", verify.Options{Seen: func(r kuji.Record) {
		fmt.Println(r.Position, r.Kind, r.Status, r.Player, r.Outcomes)
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("draws", report.Draws, "revealed", report.Epochs[0].Revealed)
	// Output:
	// 2 catalog ok  []
	// 3 draw ok ann [{hat [{hat 1}] [] [] 0} {hat [{hat 1}] [] [] 1} {hat [{hat 1}] [] [] 2}]
	// draws 3 revealed true
}
