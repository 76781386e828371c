package loadtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"github.com/kuji-dev/kuji/client"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// StreamBatch is how many draws a batch of the shape stream has.
const StreamBatch = 1000

// load is a way in which users call a server.
type load struct {
	name        string
	connections int
	batch       int  // draws in a message of a stream; 0: unary
	json        bool // otherwise gRPC
	unnamed     bool // draws without request ids
	realms      int
}

// shapes are the loads that can be asked for. Those without connections have as many as the options say.
var shapes = []load{
	{name: "json", connections: 1, json: true},
	{name: "http", json: true},
	{name: "grpc"},
	{name: "stream-1", batch: 1},
	{name: "stream", connections: 4, batch: StreamBatch},
	{name: "anonymous", connections: 4, batch: StreamBatch, unnamed: true},
}

// Shapes returns the names of the ways in which a server can be called.
func Shapes() (names []string) {
	for _, l := range shapes {
		names = append(names, l.name)
	}
	return names
}

// load returns the load of a shape.
func (o *Options) load(shape string) load {
	l := shapes[slices.Index(Shapes(), shape)]
	l.connections, l.realms = cmp.Or(l.connections, o.Connections), 1
	return l
}

// target is a server under load.
type target struct {
	*Server
	key      string
	run      string // makes realms and request ids differ between runs
	players  int
	ahead    int // batches on their way in a stream
	deadline time.Time
	draws    atomic.Int64 // acknowledged so far
}

// runName makes request ids of this run differ from those of another.
func runName() string { return fmt.Sprintf("%08x", rand.Uint32()) }

func (t *target) realm(n int) string { return fmt.Sprintf("bench-%s-%d", t.run, n) }
func (t *target) over() bool         { return !time.Now().Before(t.deadline) }

// caller is one connection's user.
type caller struct {
	*target
	load
	number    int
	realmName string
	client    *client.Client
	random    *rand.Rand
	began     bool
	sent      uint64
	latencies []float64 // milliseconds
}

// next reports whether the caller makes another request. It makes one, however short the time is.
func (c *caller) next() bool {
	more := !c.began || !c.over()
	c.began = true
	return more
}

// drive runs a load until the deadline and returns all latencies, in milliseconds, in no order.
func (t *target) drive(ctx context.Context, l load) (latencies []float64, err error) {
	options := connect.WithGRPC()
	if l.json {
		options = connect.WithProtoJSON()
	}
	callers := make([]*caller, l.connections)
	for i := range callers {
		c := &caller{target: t, load: l, number: i, realmName: t.realm(i % l.realms), random: rand.New(rand.NewPCG(uint64(i), 1))}
		if c.client, err = t.client(t.newConnection(!l.json), options); err != nil {
			return nil, err
		}
		callers[i] = c
	}
	running, ctx := errgroup.WithContext(ctx)
	for _, c := range callers {
		running.Go(func() error {
			if l.batch > 0 {
				return c.stream(ctx)
			}
			return c.unary(ctx)
		})
	}
	err = running.Wait()
	for _, c := range callers {
		latencies = append(latencies, c.latencies...)
	}
	return latencies, err
}

// appendPlayer appends the id of a player by number: a look-up among a million takes the processor longer.
func appendPlayer(dst []byte, n int) []byte {
	return strconv.AppendUint(append(dst, "player-"...), uint64(n), 10)
}

// anyone is the number of a player at random.
func (c *caller) anyone() int { return c.random.IntN(c.players) }

// nextID appends a new request id to dst.
func (c *caller) nextID(dst []byte) []byte {
	c.sent++
	dst = append(dst, c.run...)
	dst = strconv.AppendUint(append(dst, '-'), uint64(c.number), 36)
	return strconv.AppendUint(append(dst, '-'), c.sent, 36)
}

// took books an answer to a request that was sent at begin.
func (c *caller) took(begin time.Time, draws int) {
	c.latencies = append(c.latencies, float64(time.Since(begin))/float64(time.Millisecond))
	c.draws.Add(int64(draws))
}

// unary makes one draw after the other.
func (c *caller) unary(ctx context.Context) error {
	req := &kujiv1.DrawRequest{Realm: c.realmName, Pool: "bench"}
	for c.next() {
		req.Player, req.RequestId = string(appendPlayer(nil, c.anyone())), string(c.nextID(nil))
		begin := time.Now()
		res, err := c.client.Draw(ctx, req)
		if err != nil {
			return err
		}
		if st := res.GetResult().GetStatus(); st != kujiv1.Status_STATUS_OK || res.GetResult().GetReplayed() {
			return fmt.Errorf("a draw ended with %v", res.GetResult())
		}
		c.took(begin, 1)
	}
	return nil
}

// stream sends batches on a stream, with a few on their way, or one after the other if they are of one draw.
func (c *caller) stream(ctx context.Context) error {
	ahead := c.ahead
	if c.batch == 1 {
		ahead = 1
	}
	var players, ids texts
	req := &kujiv1.StreamDrawsRequest{Realm: c.realmName, Pools: []string{"bench"}}
	return c.pump(ctx, ahead, func() *kujiv1.StreamDrawsRequest {
		if !c.next() {
			return nil
		}
		req.Players = players.fill(c.batch, func(dst []byte) []byte { return appendPlayer(dst, c.anyone()) })
		if !c.unnamed {
			req.RequestIds = ids.fill(c.batch, c.nextID)
		}
		return req
	})
}

// texts are strings that are made together and share their memory.
type texts struct {
	text []byte
	ends []int
	all  []string
}

// fill makes n strings of what add appends.
func (t *texts) fill(n int, add func(dst []byte) []byte) []string {
	t.text, t.ends, t.all = t.text[:0], t.ends[:0], t.all[:0]
	for range n {
		t.text = add(t.text)
		t.ends = append(t.ends, len(t.text))
	}
	whole, from := string(t.text), 0
	for _, end := range t.ends {
		t.all = append(t.all, whole[from:end])
		from = end
	}
	return t.all
}

// sentBatch is a batch in flight.
type sentBatch struct {
	at    time.Time
	draws int
}

type drawStream = connect.BidiStreamForClientSimple[kujiv1.StreamDrawsRequest, kujiv1.StreamDrawsResponse]

// pump sends what next makes, until that is nil, and reads the answers.
func (c *caller) pump(ctx context.Context, ahead int, next func() *kujiv1.StreamDrawsRequest) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := c.client.StreamDraws(ctx)
	if err != nil {
		return err
	}
	places := make(chan struct{}, ahead)
	sent := make(chan sentBatch, ahead)
	received := make(chan error, 1)
	go func() { received <- c.receive(s, sent, places) }()
	var failed error
	for req := next(); req != nil && failed == nil; req = next() {
		select {
		case places <- struct{}{}:
		case err := <-received:
			return err
		}
		sent <- sentBatch{time.Now(), len(req.GetPlayers())} // has room
		failed = s.Send(req)                                 // Receive says why
	}
	close(sent)
	if failed == nil {
		failed = s.CloseRequest()
	}
	if err := <-received; err != nil {
		return err
	}
	return errors.Join(failed, s.CloseResponse())
}

// receive reads the response to each batch sent.
func (c *caller) receive(s *drawStream, sent <-chan sentBatch, places <-chan struct{}) error {
	for b := range sent {
		res, err := s.Receive()
		if err != nil {
			return err
		}
		done := 0
		for _, run := range res.GetRuns() {
			if run.GetStatus() != kujiv1.Status_STATUS_OK || run.GetReplayed() {
				return fmt.Errorf("draws ended with %v", run)
			}
			done += int(run.GetDraws())
		}
		if done != b.draws || len(res.GetOutcomeIndexes()) != done {
			return fmt.Errorf("%d results with %d outcomes for %d draws", done, len(res.GetOutcomeIndexes()), b.draws)
		}
		c.took(b.at, done)
		<-places
	}
	if _, err := s.Receive(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("after the last response: %w", errors.Join(err, errors.New("expected the end of the stream")))
	}
	return nil
}

// meet makes every player known by a draw.
func (t *target) meet(ctx context.Context, realm string) error {
	over, err := t.client(t.newConnection(true), connect.WithGRPC())
	if err != nil {
		return err
	}
	c := &caller{target: t, realmName: realm, client: over}
	known := 0
	var players texts
	req := &kujiv1.StreamDrawsRequest{Realm: realm, Pools: []string{"bench"}}
	err = c.pump(ctx, t.ahead, func() *kujiv1.StreamDrawsRequest {
		if known == t.players {
			return nil
		}
		req.Players = players.fill(min(StreamBatch, t.players-known), func(dst []byte) []byte {
			known++
			return appendPlayer(dst, known-1)
		})
		return req
	})
	t.draws.Store(0)
	return err
}
