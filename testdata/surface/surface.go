// Package surface stands for a program outside the module. It uses all that others build on, with
// its exact types: see TestSurface.
package surface

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/chat"
	"github.com/kuji-dev/kuji/client"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/sampler"
	"github.com/kuji-dev/kuji/wal"
)

// The segmented durable log.
var (
	_ func(dir string, o wal.Options) (*wal.Log, error)                               = wal.Open
	_ func(l *wal.Log, record []byte) (offset uint64, err error)                      = (*wal.Log).Append
	_ func(l *wal.Log, records [][]byte) (first uint64, err error)                    = (*wal.Log).AppendBatch
	_ func(l *wal.Log, ctx context.Context, record []byte) (offset uint64, err error) = (*wal.Log).AppendSync
	_ func(l *wal.Log) error                                                          = (*wal.Log).Sync
	_ func(l *wal.Log, offset uint64, dst []byte) ([]byte, error)                     = (*wal.Log).Read
	_ func(l *wal.Log, from uint64) iter.Seq2[wal.Record, error]                      = (*wal.Log).Records
	_ func(l *wal.Log) uint64                                                         = (*wal.Log).First
	_ func(l *wal.Log) uint64                                                         = (*wal.Log).Next
	_ func(l *wal.Log) uint64                                                         = (*wal.Log).Durable
	_ func(l *wal.Log, offset uint64) error                                           = (*wal.Log).TrimBefore
	_ func(l *wal.Log) error                                                          = (*wal.Log).Close

	_ = wal.Record{Offset: uint64(0), Data: []byte(nil)}
)

// Weighted sampling.
var (
	_ func(weights []uint64) (*sampler.Sampler, error)                  = sampler.New
	_ func(s *sampler.Sampler, src sampler.Source) (index int, ok bool) = (*sampler.Sampler).Draw
	_ func(s *sampler.Sampler, index int, weight uint64) error          = (*sampler.Sampler).Set
	_ func(s *sampler.Sampler, index int) uint64                        = (*sampler.Sampler).Weight
	_ func(s *sampler.Sampler) uint64                                   = (*sampler.Sampler).Total
	_ sampler.Source                                                    = rand.Source(nil)
	_ rand.Source                                                       = sampler.Source(nil)
)

// The engine.
var (
	_ func(dir string, o kuji.Options) (*kuji.Engine, error)                               = kuji.Open
	_ func(e *kuji.Engine, name string) (*kuji.Realm, error)                               = (*kuji.Engine).Realm
	_ func(e *kuji.Engine) error                                                           = (*kuji.Engine).Close
	_ func(r *kuji.Realm, ctx context.Context, c *catalog.Catalog) (kuji.Result, error)    = (*kuji.Realm).Apply
	_ func(r *kuji.Realm, ctx context.Context, req kuji.Request) (kuji.Result, error)      = (*kuji.Realm).Do
	_ func(r *kuji.Realm, ctx context.Context, reqs []kuji.Request) ([]kuji.Result, error) = (*kuji.Realm).DoAll
	_ func(r *kuji.Realm, req kuji.Request, done func(kuji.Result, error))                 = (*kuji.Realm).Submit
	_ func(r *kuji.Realm, ctx context.Context, id string) (kuji.PlayerView, error)         = (*kuji.Realm).Player
	_ func(r *kuji.Realm, ctx context.Context, id string) (kuji.PoolView, error)           = (*kuji.Realm).Pool
	_ func(r *kuji.Realm, ctx context.Context, q kuji.RanksQuery) (kuji.RanksView, error)  = (*kuji.Realm).Ranks
	_ func(yaml []byte) (*catalog.Catalog, error)                                          = catalog.Parse
)

// Requests are plain structs.
var _ = []kuji.Request{
	kuji.Draw{ID: "", Player: "", Pool: "", Count: 1},
	kuji.Grant{ID: "", Player: "", Items: []kuji.Stack{{Item: "", Quantity: uint64(1)}}},
	kuji.Consume{ID: "", Player: "", Items: []kuji.Stack{}},
	kuji.Transfer{ID: "", From: "", To: "", Items: []kuji.Stack{}},
	kuji.Atomic{ID: "", Members: []kuji.Request{kuji.Draw{}, &kuji.Grant{}}},
	kuji.Register{ID: "", Player: ""},
	kuji.Redeem{ID: "", Player: "", Code: ""},
	kuji.SetTrack{ID: "", Player: "", Track: "", Draws: uint64(0), By: "", Reason: ""},
	kuji.Progress{ID: "", Player: "", Event: "", Key: "", N: uint64(1), Note: kuji.Note{}},
	kuji.Claim{ID: "", Player: "", Quest: "", Tiers: 1, Note: kuji.Note{}},
	kuji.Collect{ID: "", Player: "", Note: kuji.Note{}},
	kuji.OpenRound{ID: "", Player: "", Round: "", Stake: []kuji.Stack{}, Tickets: uint64(1), Note: kuji.Note{}},
	kuji.Join{ID: "", Player: "", Round: "", Number: uint64(1), Stake: []kuji.Stack{}, Tickets: uint64(1), Note: kuji.Note{}},
	kuji.Settle{ID: "", Round: "", Number: uint64(1), Note: kuji.Note{}},
	kuji.Reroll{ID: "", Round: "", Number: uint64(1), Note: kuji.Note{}},
	kuji.CancelRound{ID: "", Round: "", Number: uint64(1), Note: kuji.Note{}},
	kuji.SetCounter{ID: "", Player: "", Counter: "", Value: uint64(0), Note: kuji.Note{}},
	kuji.SetLimit{ID: "", Player: "", Pool: "", Per: catalog.PerDay, Window: int64(0), Used: uint64(0), Note: kuji.Note{}},
}

// A part of a standing is asked for, and read.
var (
	_ = kuji.RanksQuery{Counter: "", Ended: false, Player: "", From: uint64(1), Most: 10}
	_ = kuji.RanksView{Of: uint64(0), Ranks: []kuji.RankView{{Rank: uint64(1), Player: "", Value: uint64(0)}}, Ends: int64(0), Position: uint64(0)}
)

// Rounds are read.
var (
	_ func(r *kuji.Realm) kuji.Rounds                                                       = kuji.RoundsOf
	_ func(r kuji.Rounds, ctx context.Context, number, from uint64) (kuji.RoundView, error) = kuji.Rounds.Get
	_ func(r kuji.Rounds, ctx context.Context) ([]kuji.RoundView, error)                    = kuji.Rounds.Open
	_ func(r kuji.Result) *kuji.RoundView                                                   = kuji.Result.Round
	_                                                                                       = kuji.RoundView{Winners: []kuji.WinnerView{{Player: "", Missed: false}}}
	_                                                                                       = kuji.RoundView{Joined: []kuji.EntrantView{{Player: "", Tickets: uint64(1)}}}
	_                                                                                       = kuji.EntrantView{Held: []kuji.HeldView{{Item: "", Quantity: uint64(1)}}}
)

// Messages of a chat.
var (
	_ func(r chat.Realm, c chat.Config) (*chat.Handler, error)                       = chat.New
	_ func(yaml []byte) (*chat.Config, error)                                        = chat.Parse
	_ func(h *chat.Handler, ctx context.Context, m chat.Message) (chat.Reply, error) = (*chat.Handler).Handle
	_ func(h *chat.Handler, ctx context.Context) error                               = (*chat.Handler).Flush
	_ func(h *chat.Handler) chat.Stats                                               = (*chat.Handler).Stats
	_ func(h *chat.Handler) error                                                    = (*chat.Handler).Close
	_ chat.Realm                                                                     = (*kuji.Realm)(nil)

	_ = chat.Message{Platform: "", User: "", Name: "", Text: "", ID: "", At: time.Time{}}
	_ = chat.Found{Trigger: "", Phrase: "", State: chat.Started, Ready: time.Time{}, Word: "", Results: []kuji.Result{}}
	_ = chat.Config{Activity: "", Every: time.Second, TimeOrdered: false, Prefix: "", Most: 1, Triggers: []chat.Trigger{{
		ID: "", Phrases: []string{}, Priority: 0, AtStart: false, Cooldown: chat.Cooldown{Player: time.Second, All: time.Second},
		Words: []chat.Word{{Name: "", Of: map[string]string{}, From: 1, To: 2, Text: false, Else: ""}},
		Do:    []chat.Action{{Do: "grant", Items: []chat.Stack{{Item: "", Quantity: "1"}}}},
	}}}
)

// Calls to servers.
var (
	_ kujiv1connect.ChatServiceClient = client.Client{}.Chat

	_ func(urls []string, o client.Options) (*client.Client, error)                       = client.New
	_ kujiv1connect.RewardServiceClient                                                   = (*client.Client)(nil)
	_ kujiv1connect.AdminServiceClient                                                    = client.Client{}.Admin
	_ func(c *client.Client, ctx context.Context, req *kujiv1.StreamEventsRequest) events = (*client.Client).Events
	_ func(c *client.Client, ctx context.Context) *client.DrawStream                      = (*client.Client).Draws
	_ func(s *client.DrawStream, batch *kujiv1.StreamDrawsRequest) error                  = (*client.DrawStream).Send
	_ func(s *client.DrawStream) (*kujiv1.StreamDrawsResponse, error)                     = (*client.DrawStream).Receive
	_ func(s *client.DrawStream)                                                          = (*client.DrawStream).CloseSend
	_ func(s *client.DrawStream)                                                          = (*client.DrawStream).Close
	_ func() string                                                                       = client.NewID
	_ func(err error) kujiv1.Reason                                                       = client.Reason
	_ func(err error) *kujiv1.ErrorDetail                                                 = client.Detail

	_ = client.Options{Key: "", Timeout: time.Second, Attempt: time.Second, Retry: func(error) {}}
	_ = []error{&client.UnknownError{RequestID: "", Err: error(nil)}, &client.UnreachableError{Err: error(nil)}}
)

type events = iter.Seq2[*kujiv1.StreamEventsResponse, error]

// use is what a program that embeds the engine does with its zero options.
func use(ctx context.Context) error {
	e, err := kuji.Open("data", kuji.Options{})
	if err != nil {
		return err
	}
	defer e.Close()
	r, err := e.Realm("default")
	if err != nil {
		return err
	}
	res, err := r.Do(kuji.Stale(ctx), kuji.Draw{ID: "order-17", Player: "ann", Pool: "standard"})
	if err != nil {
		return err
	}
	if res.Status != kuji.OK || res.Receipt.Position == uint64(0) || kuji.CodeOf(err) == kuji.CodeInvalid {
		return nil
	}
	l, err := wal.Open("log", wal.Options{})
	if err != nil {
		return err
	}
	return l.Close()
}

var _ = use
