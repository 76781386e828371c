package kuji_test

import (
	"context"
	"fmt"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

const monthly = `
kuji: 1
items: {pass: {lasts: 30d}}
pools: {shop: {entries: [{id: pass, weight: 1, reward: {items: {pass: 1}}}]}}
`

// A test of what takes a month: the clock is moved, and what is due is settled at once.
func ExampleTestClock() {
	if err := month(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// [{pass 1}]
	// []
}

func month(ctx context.Context) error {
	clock := &kuji.TestClock{}
	engine, err := kuji.OpenMemory([32]byte{}, kuji.Options{Now: clock.Now})
	if err != nil {
		return err
	}
	defer engine.Close()
	realm, err := engine.Realm("default")
	if err != nil {
		return err
	}
	c, err := catalog.Parse([]byte(monthly))
	if err != nil {
		return err
	}
	if _, err := realm.Apply(ctx, c); err != nil {
		return err
	}
	if _, err := realm.Do(ctx, kuji.Draw{Player: "ann", Pool: "shop"}); err != nil {
		return err
	}
	for range 2 {
		v, err := realm.Player(ctx, "ann")
		if err != nil {
			return err
		}
		fmt.Println(v.Items)
		clock.Move(30 * 24 * time.Hour)
		if err := realm.Settle(ctx); err != nil {
			return err
		}
	}
	return nil
}
