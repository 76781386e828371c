package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server/access"
	"github.com/kuji-dev/kuji/server/internal/message"
	"github.com/kuji-dev/kuji/server/internal/redis"
)

// redisBackend answers what Redis clients ask for.
type redisBackend struct {
	commands *commands
	shares   *shares
	journal  *journal
	unrouted *rpcMetrics
	metrics  map[string]*rpcMetrics // by command
}

func newRedisBackend(c *commands, s *shares, j *journal, m *metrics) *redisBackend {
	b := &redisBackend{c, s, j, m.unrouted, make(map[string]*rpcMetrics)}
	for name := range redis.Usage() {
		b.metrics[name] = m.rpc("/" + redisMethods + name)
	}
	return b
}

// answer has this server answer, or the one that leads the realm, also if the realm stops before
// anything has happened here. Another one gets a call of the API: see [Cluster].
func (b *redisBackend) answer(ctx context.Context, c *redis.Client, realm string, here func() error, there func(kujiv1connect.RewardServiceClient) error) error {
	cluster := b.shares.cluster
	if cluster == nil {
		return here()
	}
	out := Call{Realm: realm, Began: time.Now()}
	caller := httpClient(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody()
		r.ContentLength, r.RemoteAddr = int64(len(body)), c.Peer
		if c.Secret != "" {
			r.Header.Set("Authorization", "Bearer "+c.Secret)
		}
		out.Request = r
		return cluster.Call(&out)
	})
	for mine := cluster.Holds(realm); ; mine = true {
		if mine {
			if err := here(); !stoppedBefore(err) {
				return err
			}
		}
		err := there(kujiv1connect.NewRewardServiceClient(caller, "http://127.0.0.1"))
		if errors.Is(err, ErrHere) {
			out.Tries++
			continue
		}
		if ce, ok := errors.AsType[*connect.Error](err); err != nil && (!ok || len(ce.Details()) == 0) && ctx.Err() == nil {
			// No server says so: it may have happened.
			return &kuji.Error{Code: kuji.CodeUnknownOutcome, Message: "the connection to the leader was lost: send the same request id again"}
		}
		return err
	}
}

// httpClient is a [connect.HTTPClient].
type httpClient func(*http.Request) (*http.Response, error)

// Do implements [connect.HTTPClient].
func (f httpClient) Do(r *http.Request) (*http.Response, error) { return f(r) }

// Do implements [redis.Backend].
func (b *redisBackend) Do(ctx context.Context, c *redis.Client, realm string, all []redis.Command, answers []redis.Answer) error {
	return b.answer(ctx, c, realm, func() error { return b.do(ctx, c, realm, all, answers) },
		func(rewards kujiv1connect.RewardServiceClient) error { return ask(ctx, rewards, realm, all, answers) })
}

// do has this server carry out commands.
func (b *redisBackend) do(ctx context.Context, c *redis.Client, realm string, all []redis.Command, answers []redis.Answer) error {
	r, err := b.shares.realms.get(realm)
	if err != nil {
		return err
	}
	reqs, results := make([]kuji.Request, len(all)), make([]kuji.Result, len(all))
	for i, one := range all {
		reqs[i] = message.Request(one.ID, one.Message, kuji.Note{By: c.Name, Reason: one.Reason})
	}
	if err := b.commands.doAll(ctx, c.Access, r, reqs, results); err != nil {
		return err
	}
	b.commands.metrics.all(results)
	for i := range results {
		if answers[i].Err = results[i].Err; results[i].Status != kuji.Refused {
			answers[i] = redis.Answer{Result: message.Result(&results[i])}
		}
	}
	return nil
}

// ask has another server carry out commands.
func ask(ctx context.Context, rewards kujiv1connect.RewardServiceClient, realm string, all []redis.Command, answers []redis.Answer) error {
	m := &kujiv1.BatchRequest{Realm: realm}
	for _, one := range all {
		m.Commands = append(m.Commands, contract.AsCommand(one.ID, one.Message))
		m.Commands[len(m.Commands)-1].Reason = one.Reason
	}
	res, err := rewards.Batch(ctx, m)
	if err != nil {
		return err
	}
	if len(res.GetResults()) != len(answers) {
		return fmt.Errorf("%d answers to %d commands", len(res.GetResults()), len(answers))
	}
	for i, one := range res.GetResults() {
		if one.GetStatus() == kujiv1.Status_STATUS_REFUSED {
			answers[i] = redis.Answer{Err: message.RefusalSaid(one.GetError())}
			continue
		}
		alone, err := message.Alone(res, one)
		if err != nil {
			return err
		}
		answers[i] = redis.Answer{Result: alone}
	}
	return nil
}

// Read implements [redis.Backend].
func (b *redisBackend) Read(ctx context.Context, c *redis.Client, realm string, request proto.Message) (out proto.Message, err error) {
	read := func(from readers) (err error) {
		out, err = look(ctx, from, request)
		return err
	}
	err = b.answer(ctx, c, realm, func() error {
		r, err := b.shares.realms.get(realm)
		if err != nil {
			return err
		}
		ctx = context.WithValue(ctx, callKey{}, &call{access: c.Access, target: r})
		return read(reads{})
	},
		func(rewards kujiv1connect.RewardServiceClient) error { return read(rewards) })
	return out, err
}

// readers are what answers what commands read, here or at another server.
type readers interface {
	GetPlayer(context.Context, *kujiv1.GetPlayerRequest) (*kujiv1.GetPlayerResponse, error)
	ListQuests(context.Context, *kujiv1.ListQuestsRequest) (*kujiv1.ListQuestsResponse, error)
	ListRanks(context.Context, *kujiv1.ListRanksRequest) (*kujiv1.ListRanksResponse, error)
	GetRound(context.Context, *kujiv1.GetRoundRequest) (*kujiv1.GetRoundResponse, error)
	ListRounds(context.Context, *kujiv1.ListRoundsRequest) (*kujiv1.ListRoundsResponse, error)
	GetHold(context.Context, *kujiv1.GetHoldRequest) (*kujiv1.GetHoldResponse, error)
	ListHolds(context.Context, *kujiv1.ListHoldsRequest) (*kujiv1.ListHoldsResponse, error)
	GetPool(context.Context, *kujiv1.GetPoolRequest) (*kujiv1.GetPoolResponse, error)
	GetOdds(context.Context, *kujiv1.GetOddsRequest) (*kujiv1.GetOddsResponse, error)
}

func look(ctx context.Context, from readers, m proto.Message) (proto.Message, error) {
	switch m := m.(type) {
	case *kujiv1.GetPlayerRequest:
		res, err := from.GetPlayer(ctx, m)
		return res.GetPlayer(), err
	case *kujiv1.ListQuestsRequest:
		return from.ListQuests(ctx, m)
	case *kujiv1.ListRanksRequest:
		return from.ListRanks(ctx, m)
	case *kujiv1.GetRoundRequest:
		return from.GetRound(ctx, m)
	case *kujiv1.ListRoundsRequest:
		return from.ListRounds(ctx, m)
	case *kujiv1.GetHoldRequest:
		res, err := from.GetHold(ctx, m)
		return res.GetHold(), err
	case *kujiv1.ListHoldsRequest:
		return from.ListHolds(ctx, m)
	case *kujiv1.GetPoolRequest:
		res, err := from.GetPool(ctx, m)
		return res.GetPool(), err
	case *kujiv1.GetOddsRequest:
		res, err := from.GetOdds(ctx, m)
		return res.GetOdds(), err
	}
	return nil, fmt.Errorf("no Redis command asks for a %T", m)
}

// CheckRealm implements [redis.Backend]. In a cluster, another server may have the realm.
func (b *redisBackend) CheckRealm(realm string) error {
	if b.shares.cluster != nil {
		return nil
	}
	_, err := b.shares.realms.get(realm)
	return err
}

// Error implements [redis.Backend].
func (b *redisBackend) Error(err error, request any) *connect.Error {
	return b.journal.answer(err, request)
}

// Panicked implements [redis.Backend].
func (b *redisBackend) Panicked(p any) { b.journal.panicked("the Redis protocol", p) }

// Ended implements [redis.Backend], as ServeHTTP does for a call.
func (b *redisBackend) Ended(c *redis.Client, e *redis.Ended) {
	took := time.Since(e.Arrived)
	method, label := noRedis, codeLabel(0)
	if e.Failed != nil {
		label = codeLabel(e.Failed.Code())
	}
	if m := b.metrics[e.Command]; m != nil {
		method = redisMethods + e.Command
		m.done(label, took)
	} else {
		b.unrouted.done(label, 0)
	}
	if b.journal.access == nil && e.Failed == nil && !b.journal.isSlow(took) && !b.journal.slowest.wants(e.Arrived, took) {
		return
	}
	one := &call{access: access.Passerby, start: e.Arrived, took: took, reached: true,
		logged: logged{method: method, peer: c.Peer, realm: e.Realm, received: int64(e.Size)}}
	if c.Access != nil {
		one.access, one.key = c.Access, c.Name
	}
	if e.Failed != nil {
		one.failed, one.code = e.Failed, e.Failed.Code()
	}
	if e.Status != 0 {
		one.status = contract.Word(e.Status)
	}
	one.answer.bytes = e.Answered
	b.journal.call(one)
}
