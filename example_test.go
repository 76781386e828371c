package kuji_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

const shop = `
kuji: 1
items:
  gem: {kind: currency}
  figure: {name: Figure}
pools:
  box:
    mode: raffle
    price: {gem: 100}
    entries:
      - {id: a, stock: 2, reward: {items: {figure: 1}}}
`

// The whole way: open, put a catalog in force, give a player currency, draw,
// look, close.
func Example() {
	if err := campaign(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	// Output:
	// drawn a [{figure 1}]
	// ann [{gem 150} {figure 1}]
}

func campaign(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "kuji") // a real one keeps its data
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	engine, err := kuji.Open(dir, kuji.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	realm, err := engine.Realm("default")
	if err != nil {
		return err
	}
	c, err := catalog.Parse([]byte(shop))
	if err != nil {
		return err // every error names line, column and what was expected
	}
	if _, err := realm.Apply(ctx, c); err != nil {
		return err
	}
	paid, err := realm.Do(ctx, kuji.Grant{ID: "payment-1", Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 250}}})
	if err != nil {
		return err
	}
	if paid.Status != kuji.OK {
		return fmt.Errorf("the payment was refused: %v", paid)
	}
	drawn, err := realm.Do(ctx, kuji.Draw{ID: "order-1", Player: "ann", Pool: "box"})
	if err != nil {
		return err
	}
	for _, outcome := range drawn.Outcomes {
		fmt.Println("drawn", outcome.Entry, outcome.Items)
	}
	ann, err := realm.Player(ctx, "ann")
	if err != nil {
		return err
	}
	fmt.Println(ann.ID, ann.Items)
	return nil
}

// exampleRealm opens a realm with the catalog in force, where nothing is
// written: see OpenMemory.
func exampleRealm(ctx context.Context) (*kuji.Engine, *kuji.Realm, error) {
	engine, err := kuji.OpenMemory([32]byte{1}, kuji.Options{})
	if err != nil {
		return nil, nil, err
	}
	realm, err := engine.Realm("default")
	if err != nil {
		return nil, nil, err
	}
	c, err := catalog.Parse([]byte(shop))
	if err != nil {
		return nil, nil, err
	}
	_, err = realm.Apply(ctx, c)
	return engine, realm, err
}

// What depends on the state is a status, not an error, and the answer to its
// request id from then on: whoever wants to try again takes a new id.
func ExampleRealm_Do() {
	ctx := context.Background()
	engine, realm, err := exampleRealm(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	try := func(req kuji.Request) {
		res, err := realm.Do(ctx, req)
		if err != nil {
			fmt.Println("error", kuji.CodeOf(err))
			return
		}
		switch res.Status {
		case kuji.OK:
			fmt.Println("ok", res.Outcomes, "replayed:", res.Replayed)
		case kuji.SoldOut, kuji.InsufficientItems:
			fmt.Println("no luck:", res.Status, res.Subject)
		default:
			fmt.Println("unexpected:", res)
		}
	}
	try(kuji.Draw{ID: "d1", Player: "ann", Pool: "box"})
	try(kuji.Grant{ID: "g1", Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 500}}})
	try(kuji.Draw{ID: "d1", Player: "ann", Pool: "box"}) // still too poor
	try(kuji.Draw{ID: "d2", Player: "ann", Pool: "box"})
	try(kuji.Draw{ID: "d2", Player: "ann", Pool: "box"}) // not drawn again
	try(kuji.Draw{ID: "d2", Player: "bob", Pool: "box"}) // another request under its id
	try(kuji.Draw{ID: "d3", Player: "ann", Pool: "box", Count: 2})
	// Output:
	// no luck: insufficient_items gem
	// ok [] replayed: false
	// no luck: insufficient_items gem
	// ok [{a [{figure 1}] [] [] 0}] replayed: false
	// ok [{a [{figure 1}] [] [] 0}] replayed: true
	// error id_reused
	// no luck: sold_out box
}

// Sending a request again under its id is always safe. Some errors ask for it.
func ExampleCodeOf() {
	ctx := context.Background()
	engine, realm, err := exampleRealm(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	send := func(req kuji.Request) (kuji.Result, error) {
		for pause := time.Millisecond; ; pause *= 2 {
			res, err := realm.Do(ctx, req)
			if kuji.CodeOf(err) != kuji.CodeOverloaded {
				// With CodeUnknownOutcome after ctx has ended, send the same request again
				// under another context. When realm.Err() is not nil the disk has failed:
				// close the engine, open it again, and send the same request then. Either
				// way the answer is what became of the first one.
				return res, err
			}
			select { // nothing has happened; there will be room
			case <-time.After(pause):
			case <-ctx.Done():
				return res, ctx.Err()
			}
		}
	}
	res, err := send(kuji.Grant{ID: "g1", Player: "ann", Items: []kuji.Stack{{Item: "gem", Quantity: 100}}})
	fmt.Println(res.Status, err)
	_, err = send(kuji.Draw{ID: "d1", Player: "", Pool: "box"})
	fmt.Println(kuji.CodeOf(err), err)
	// Output:
	// ok <nil>
	// invalid kuji: invalid: player: empty; want a player id of 1 to 64 bytes
}

// Requests that come together become durable together.
func ExampleRealm_DoAll() {
	ctx := context.Background()
	engine, realm, err := exampleRealm(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	gems := []kuji.Stack{{Item: "gem", Quantity: 100}}
	results, err := realm.DoAll(ctx, []kuji.Request{
		kuji.Grant{ID: "1", Player: "ann", Items: gems},
		kuji.Draw{ID: "2", Player: "ann", Pool: "box"},
		kuji.Draw{ID: "3", Player: "ann", Pool: "box", Count: -1},
		kuji.Atomic{ID: "4", Members: []kuji.Request{
			kuji.Grant{Player: "bob", Items: gems},
			kuji.Transfer{From: "bob", To: "ann", Items: gems},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, res := range results {
		fmt.Println(i, res.Status, res.Outcomes, res.Err)
	}
	// Output:
	// 0 ok [] <nil>
	// 1 ok [{a [{figure 1}] [] [] 0}] <nil>
	// 2 refused [] kuji: invalid: count: -1; 1 to 1000 are allowed
	// 3 ok [] <nil>
}

// A plan says what a catalog would do to a realm, before it is applied over
// the version that was looked at.
func ExamplePools_Odds() {
	ctx := context.Background()
	engine, realm, err := exampleRealm(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	odds, err := realm.Pools().Odds(ctx, "box", "ann", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("a draw now:", odds.Status, odds.Subject)
	for _, o := range odds.Outcomes {
		fmt.Printf("%s/%s %s\n", o.Pool, o.Entry, o.Chance.RatString())
	}
	for _, it := range odds.Items {
		fmt.Println(it.Expected.FloatString(2), it.Item, "on average")
	}
	// Output:
	// a draw now: insufficient_items gem
	// box/a 1
	// 1.00 figure on average
}

func ExampleCatalogs_Plan() {
	ctx := context.Background()
	engine, realm, err := exampleRealm(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	c, err := catalog.Parse([]byte(`
kuji: 1
items:
  gem: {kind: currency}
  figure: {name: Figure}
pools:
  box:
    mode: raffle
    price: {gem: 100}
    entries:
      - {id: a, stock: 10, reward: {items: {figure: 1}}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := realm.Catalogs().Plan(ctx, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, change := range plan.Changes {
		fmt.Println(change.Kind, change.Text)
	}
	if _, err := realm.Catalogs().Apply(ctx, c, kuji.ApplyOptions{Over: new(plan.Version - 1)}); err != nil {
		fmt.Println(err)
		return
	}
	box, err := realm.Pool(ctx, "box")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("catalog", box.CatalogVersion, "left", box.Entries[0].Left)
	// Output:
	// entry_changed pool box, entry a: stock 10 instead of 2; 0 drawn already, 2 of 2 left before, 10 of 10 after
	// catalog 2 left 10
}
