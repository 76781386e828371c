package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/client"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// A draw over the network. However often it has to be sent, it happens once.
func Example() {
	ctx := context.Background()
	url, stop, err := serveHats(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	c, err := client.New([]string{url}, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	id := client.NewID() // keep it: it is the name of what shall happen
	for range 2 {
		res, err := c.Draw(ctx, &kujiv1.DrawRequest{RequestId: id, Player: "ann", Pool: "hats"})
		if open, ok := errors.AsType[*client.UnknownError](err); ok {
			fmt.Println("ask later what came of", open.RequestID)
			return
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.GetResult().GetStatus(), res.GetResult().GetReplayed())
	}
	// Output:
	// STATUS_OK false
	// STATUS_OK true
}

// A feed that goes on through lost connections, until it has come to the third draw.
func ExampleClient_Events() {
	ctx := context.Background()
	url, stop, err := serveHats(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	c, err := client.New([]string{url}, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		if _, err := c.Draw(ctx, &kujiv1.DrawRequest{Player: "ann", Pool: "hats"}); err != nil {
			fmt.Println(err)
			return
		}
	}
	from, draws := uint64(1), 0 // keep Next of each message to go on from there another time
	for m, err := range c.Events(ctx, &kujiv1.StreamEventsRequest{From: &from, Pool: "hats"}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, e := range m.GetEvents() {
			draws++
			fmt.Println(e.GetKind(), e.GetPlayer(), e.GetOutcomes()[0].GetEntry())
		}
		if draws >= 3 {
			break
		}
	}
	// Output:
	// draw ann hat
	// draw ann hat
	// draw ann hat
}

// Draws by the thousand: batches on a stream, sent by one goroutine and received by another.
func ExampleClient_Draws() {
	ctx := context.Background()
	url, stop, err := serveHats(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	c, err := client.New([]string{url}, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	draws := c.Draws(ctx)
	defer draws.Close()
	go func() {
		defer draws.CloseSend()
		for range 2 {
			if err := draws.Send(&kujiv1.StreamDrawsRequest{Players: []string{"ann", "bob"}, Pools: []string{"hats"}}); err != nil {
				return // Receive says why
			}
		}
	}()
	for range 2 {
		res, err := draws.Receive()
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, run := range res.GetRuns() {
			fmt.Println(run.GetDraws(), run.GetStatus())
		}
	}
	// Output:
	// 2 STATUS_OK
	// 2 STATUS_OK
}

// serveHats serves a realm with a pool of hats.
func serveHats(ctx context.Context) (url string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "kuji")
	if err != nil {
		return "", nil, err
	}
	engine, err := kuji.Open(dir, kuji.Options{})
	if err != nil {
		return "", nil, err
	}
	realm, err := engine.Realm(server.DefaultRealm)
	if err != nil {
		return "", nil, err
	}
	cat, err := catalog.Parse([]byte("kuji: 1\nitems: {hat: {}}\npools: {hats: {entries: [{id: hat, weight: 1, reward: {items: {hat: 1}}}]}}\n"))
	if err != nil {
		return "", nil, err
	}
	if _, err := realm.Apply(ctx, cat); err != nil {
		return "", nil, err
	}
	srv, err := server.New(engine, server.Options{})
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() {
		if err := errors.Join(srv.Shutdown(ctx), <-served, engine.Close(), os.RemoveAll(dir)); err != nil {
			fmt.Println(err)
		}
	}, nil
}
