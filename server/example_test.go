package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

// An engine of one's own behind the API, from the first request to the orderly end.
func Example() {
	if err := serveOnce(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// STATUS_OK [hat 1]
}

func serveOnce(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "kuji") // a real one keeps its data
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	engine, err := kuji.Open(dir, kuji.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }() // after the server
	realm, err := engine.Realm(server.DefaultRealm)
	if err != nil {
		return err
	}
	c, err := catalog.Parse([]byte("kuji: 1\nitems: {hat: {}}\npools: {p: {entries: [{id: hat, weight: 1, reward: {items: {hat: 1}}}]}}\n"))
	if err != nil {
		return err
	}
	if _, err := realm.Apply(ctx, c); err != nil {
		return err
	}

	const address = "127.0.0.1:0"
	if err := access.CheckListen(address, access.Exposure{}); err != nil {
		return err // open to others: it needs keys and TLS
	}
	srv, err := server.New(engine, server.Options{})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()

	client := kujiv1connect.NewRewardServiceClient(http.DefaultClient, "http://"+listener.Addr().String())
	res, err := client.Draw(ctx, &kujiv1.DrawRequest{RequestId: "order-17", Player: "ann", Pool: "p"})
	if err != nil {
		return err
	}
	for _, item := range res.GetResult().GetOutcomes()[0].GetItems() {
		fmt.Println(res.GetResult().GetStatus(), []any{item.GetItem(), item.GetQuantity()})
	}
	return errors.Join(srv.Shutdown(ctx), <-served)
}
