// Command goclient is package client as the conformance suite drives it: see package conformance.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"reflect"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji/client"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// task is a line that comes in.
type task struct {
	N         int
	Op        string
	Client    string
	URLs      []string
	Key       string
	TimeoutMs int
	AttemptMs int
	SilenceMs int
	Service   string
	Method    string
	Request   json.RawMessage
	Batches   []json.RawMessage
	Events    int
	Of        int
}

// report is a line that goes out.
type report struct {
	N      int             `json:"n"`
	Item   json.RawMessage `json:"item,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *failure        `json:"error,omitempty"`
}

type failure struct {
	Kind       string   `json:"kind"`
	Code       string   `json:"code"`
	Reason     string   `json:"reason"`
	Message    string   `json:"message"`
	RequestIDs []string `json:"requestIds"`
	Fields     []string `json:"fields"`
}

// program has the clients that were opened and the tasks that go on.
type program struct {
	mu      sync.Mutex
	clients map[string]*client.Client
	cancels map[int]context.CancelFunc
	out     *json.Encoder
}

func main() {
	log.SetFlags(0)
	p := &program{clients: map[string]*client.Client{}, cancels: map[int]context.CancelFunc{}, out: json.NewEncoder(os.Stdout)}
	for in := json.NewDecoder(bufio.NewReader(os.Stdin)); ; {
		var t task
		err := in.Decode(&t)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(err) // the suite writes what no program can read
		}
		ctx, cancel := context.WithCancel(context.Background())
		p.mu.Lock()
		p.cancels[t.N] = cancel
		p.mu.Unlock()
		if t.Op == "open" || t.Op == "cancel" {
			p.run(ctx, t)
		} else {
			go p.run(ctx, t)
		}
	}
}

func (p *program) write(r report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.out.Encode(r); err != nil {
		panic(err)
	}
}

func (p *program) run(ctx context.Context, t task) {
	result, err := p.do(ctx, t)
	if err != nil {
		p.write(report{N: t.N, Error: describe(err)})
		return
	}
	p.write(report{N: t.N, Result: result})
}

func (p *program) do(ctx context.Context, t task) (json.RawMessage, error) {
	p.mu.Lock()
	c, cancel := p.clients[t.Client], p.cancels[t.Of]
	p.mu.Unlock()
	switch t.Op {
	case "open":
		c, err := client.New(t.URLs, client.Options{
			Key:     t.Key,
			Timeout: time.Duration(t.TimeoutMs) * time.Millisecond,
			Attempt: time.Duration(t.AttemptMs) * time.Millisecond,
			Silence: time.Duration(t.SilenceMs) * time.Millisecond,
		})
		p.mu.Lock()
		p.clients[t.Client] = c
		p.mu.Unlock()
		return json.RawMessage("{}"), err
	case "id":
		return json.Marshal(map[string]string{"id": client.NewID()})
	case "cancel":
		cancel()
		return json.RawMessage("{}"), nil
	case "call":
		return call(ctx, c, t)
	case "draws":
		return json.RawMessage("{}"), p.draws(ctx, c, t)
	case "events":
		return json.RawMessage("{}"), p.events(ctx, c, t)
	}
	return nil, errors.New("no such op: " + t.Op)
}

// call calls a method of the client by its name.
func call(ctx context.Context, c *client.Client, t task) (json.RawMessage, error) {
	var service any = c
	switch t.Service {
	case "AdminService":
		service = c.Admin
	case "ChatService":
		service = c.Chat
	}
	method := reflect.ValueOf(service).MethodByName(t.Method)
	req := reflect.New(method.Type().In(1).Elem())
	if err := protojson.Unmarshal(t.Request, req.Interface().(proto.Message)); err != nil {
		return nil, err
	}
	out := method.Call([]reflect.Value{reflect.ValueOf(ctx), req})
	if err, ok := out[1].Interface().(error); ok {
		return nil, err
	}
	return protojson.Marshal(out[0].Interface().(proto.Message))
}

// item writes a part of a stream or a feed.
func (p *program) item(n int, m proto.Message) error {
	data, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	p.write(report{N: n, Item: data})
	return nil
}

func (p *program) draws(ctx context.Context, c *client.Client, t task) error {
	stream := c.Draws(ctx)
	defer stream.Close()
	go func() {
		for _, data := range t.Batches {
			batch := &kujiv1.StreamDrawsRequest{}
			if err := protojson.Unmarshal(data, batch); err != nil {
				panic(err)
			}
			if err := stream.Send(batch); err != nil {
				return // Receive says why
			}
		}
		stream.CloseSend()
	}()
	for {
		resp, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.item(t.N, resp); err != nil {
			return err
		}
	}
}

func (p *program) events(ctx context.Context, c *client.Client, t task) error {
	req := &kujiv1.StreamEventsRequest{}
	if err := protojson.Unmarshal(t.Request, req); err != nil {
		return err
	}
	came := 0
	for m, err := range c.Events(ctx, req) {
		if err != nil {
			return err
		}
		if err := p.item(t.N, m); err != nil {
			return err
		}
		if came += len(m.GetEvents()); came >= t.Events {
			return nil
		}
	}
	return nil
}

// describe says what a caller can see of an error.
func describe(err error) *failure {
	f := &failure{Kind: "server", Code: connect.CodeOf(err).String(), Message: err.Error(), RequestIDs: []string{}, Fields: []string{}}
	if errors.Is(err, context.Canceled) {
		f.Code = connect.CodeCanceled.String()
	}
	if reason := client.Reason(err); reason != kujiv1.Reason_REASON_UNSPECIFIED {
		f.Reason = reason.String()
	}
	for _, v := range client.Detail(err).GetViolations() {
		f.Fields = append(f.Fields, v.GetField())
	}
	if unknown, ok := errors.AsType[*client.UnknownError](err); ok {
		f.Kind, f.RequestIDs = "unknown", unknown.RequestIDs
	}
	if _, ok := errors.AsType[*client.UnreachableError](err); ok {
		f.Kind = "unreachable"
	}
	return f
}
