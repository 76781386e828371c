package conformance

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// language is a client that takes part.
type language struct {
	name string
	// command returns the command of its program, or an error that says what is missing.
	command func(t *testing.T) ([]string, error)
	// noDraws: the client has no stream of draws, as in a browser.
	noDraws bool
}

// languages are all that take part. Those but Go need what clients/install.sh has put into KUJI_CLIENTS.
var languages = []language{
	{name: "go", command: goProgram},
	{name: "python", command: installed("python", "bin/python", "clients/python/tests/program.py")},
	{name: "python-async", command: installed("python", "bin/python", "clients/python/tests/program.py", "--async")},
	{name: "typescript", command: installed("typescript", "node", "build/test/program.js")},
	{name: "typescript-web", command: installed("typescript", "node", "build/test/program.js", "--web"), noDraws: true},
	{name: "deno", command: deno, noDraws: true},
	{name: "java", command: installed("java", "java", "", "-XX:TieredStopAtLevel=1", "dev.kuji.Conformance")},
}

// errMissing says that what a language needs is not here.
var errMissing = errors.New("left out")

func goProgram(t *testing.T) ([]string, error) {
	bin := filepath.Join(t.TempDir(), "goclient")
	out, err := exec.Command("go", "build", "-o", bin, "./goclient").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return []string{bin}, nil
}

// deno runs the web client of TypeScript in Deno.
func deno(t *testing.T) ([]string, error) {
	web, err := installed("typescript", "node", "build/test/program.js", "--web")(t)
	if err != nil {
		return nil, err
	}
	bin := filepath.Join(os.Getenv("KUJI_CLIENTS"), "deno", "node_modules", ".bin", "deno")
	if !exists(bin) {
		return nil, fmt.Errorf("%w: clients/install.sh has not installed %s", errMissing, bin)
	}
	return append([]string{bin, "run", "--allow-all", "--quiet"}, web[1:]...), nil
}

// installed returns the command of a program below KUJI_CLIENTS/dir. A program that is not there is looked for
// in the repository, and an interpreter in the path.
func installed(dir, interpreter, program string, args ...string) func(*testing.T) ([]string, error) {
	return func(*testing.T) ([]string, error) {
		all := os.Getenv("KUJI_CLIENTS")
		if all == "" {
			return nil, fmt.Errorf("%w: KUJI_CLIENTS is not set; clients/install.sh DIR installs what it names", errMissing)
		}
		home := filepath.Join(all, dir)
		if _, err := os.Stat(home); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: clients/install.sh has not installed %s", errMissing, home)
		}
		if own := filepath.Join(home, interpreter); exists(own) {
			interpreter = own
		} else if _, err := exec.LookPath(interpreter); err != nil {
			return nil, fmt.Errorf("%w: %w", errMissing, err)
		}
		if program == "" { // Java has a folder of jars
			return append([]string{interpreter, "-cp", filepath.Join(home, "*")}, args...), nil
		}
		path := filepath.Join(home, program)
		if !exists(path) {
			path = filepath.Join("..", "..", program)
		}
		return append([]string{interpreter, path}, args...), nil
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// patience is how long anything may take before a test gives up on it.
const patience = 30 * time.Second

// program is a running program of a language.
type program struct {
	language
	in io.Writer

	mu    sync.Mutex
	last  int
	tasks map[int]chan line
	ended error
}

// line is what a program says.
type line struct {
	N      int
	Item   json.RawMessage
	Result json.RawMessage
	Error  *failure
}

// failure is an error as a caller of the client sees it.
type failure struct {
	Kind       string
	Code       string
	Reason     string
	Message    string
	RequestIDs []string
	Fields     []string
}

func (f *failure) String() string {
	if f == nil {
		return "no error"
	}
	return fmt.Sprintf("%s: %s %s of %q, fields %q: %s", f.Kind, f.Code, f.Reason, f.RequestIDs, f.Fields, f.Message)
}

// start starts the program of a language. It ends with the test, and may not have failed by then.
func start(t *testing.T, l language) *program {
	t.Helper()
	command, err := l.command(t)
	if errors.Is(err, errMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &program{language: l, in: in, tasks: map[int]chan line{}}
	read := make(chan struct{})
	go func() { defer close(read); p.read(out) }()
	t.Cleanup(func() {
		in.Close()
		kill := time.AfterFunc(patience/3, func() { cmd.Process.Kill() })
		defer kill.Stop()
		<-read
		if err := cmd.Wait(); err != nil || t.Failed() && said.Len() > 0 {
			t.Errorf("the program ended: %v\n%s", err, said.String())
		}
	})
	return p
}

// read hands the program's lines to those who wait for them.
func (p *program) read(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		data, err := lines.ReadBytes('\n')
		var l line
		if err == nil {
			if err = json.Unmarshal(data, &l); err != nil {
				err = fmt.Errorf("%w in %q", err, data)
			}
		}
		p.mu.Lock()
		if err != nil {
			p.ended = err
			for _, task := range p.tasks {
				close(task)
			}
			p.mu.Unlock()
			return
		}
		task := p.tasks[l.N]
		p.mu.Unlock()
		if task != nil {
			task <- l
		}
	}
}

// task is something that a program does.
type task struct {
	*program
	n     int
	lines chan line
}

// do begins a task.
func (p *program) do(t *testing.T, op string, fields map[string]any) *task {
	t.Helper()
	what := map[string]any{"op": op}
	for name, value := range fields {
		if m, ok := value.(proto.Message); ok {
			value = json.RawMessage(written(t, m))
		}
		what[name] = value
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	what["n"] = p.last
	data, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	doing := &task{p, p.last, make(chan line, 10_000)} // no scenario has more lines: reading never waits
	if p.ended != nil {
		t.Fatalf("the program has ended: %v", p.ended)
	}
	p.tasks[p.last] = doing.lines
	if _, err := p.in.Write(append(data, '\n')); err != nil {
		t.Fatal(err)
	}
	return doing
}

// soon receives from a channel.
func soon[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatalf("nothing for %s", patience)
	}
	return v
}

// next returns the task's next line.
func (k *task) next(t *testing.T) line {
	t.Helper()
	patient := time.NewTimer(patience)
	defer patient.Stop()
	select {
	case l, ok := <-k.lines:
		if !ok {
			t.Fatalf("the program ended: %v", k.ended)
		}
		return l
	case <-patient.C:
		t.Fatalf("nothing from the program for %s", patience)
	}
	return line{}
}

// end reads the task's answer into a message, if it is not nil, or returns its error.
func (k *task) end(t *testing.T, into proto.Message) *failure {
	t.Helper()
	l := k.next(t)
	if l.Error != nil {
		return l.Error
	}
	if l.Result == nil {
		t.Fatalf("%s, want a result", l.Item)
	}
	if into != nil {
		read(t, l.Result, into)
	}
	return nil
}

func written(t *testing.T, m proto.Message) []byte {
	t.Helper()
	data, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func read(t *testing.T, data []byte, into proto.Message) {
	t.Helper()
	if err := protojson.Unmarshal(data, into); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
}

// caller is a client that a program has opened.
type caller struct {
	*program
	name string
}

// options of a client, beside its servers.
type options struct {
	key              string
	timeout, attempt time.Duration
	silence          time.Duration
}

// opened counts clients: each has a name of its own.
var opened atomic.Int64

// open opens a client.
func (p *program) open(t *testing.T, o options, urls ...string) *caller {
	t.Helper()
	c := &caller{p, fmt.Sprintf("%s-%d", t.Name(), opened.Add(1))}
	if o.timeout == 0 {
		o.timeout = patience
	}
	f := p.do(t, "open", map[string]any{
		"client": c.name, "urls": urls, "key": o.key, "timeoutMs": o.timeout.Milliseconds(),
		"attemptMs": o.attempt.Milliseconds(), "silenceMs": o.silence.Milliseconds(),
	}).end(t, nil)
	if f != nil {
		t.Fatal(f)
	}
	return c
}

// begin begins a call of the service for rewards, or of another: AdminService/GetStatus.
func (c *caller) begin(t *testing.T, method string, req proto.Message) *task {
	t.Helper()
	service := "RewardService"
	if s, m, ok := strings.Cut(method, "/"); ok {
		service, method = s, m
	}
	return c.do(t, "call", map[string]any{"client": c.name, "service": service, "method": method, "request": req})
}

// call makes a call that must succeed.
func (c *caller) call(t *testing.T, method string, req, resp proto.Message) {
	t.Helper()
	if f := c.begin(t, method, req).end(t, resp); f != nil {
		t.Fatalf("%s: %v", method, f)
	}
}

// fails makes a call that must fail.
func (c *caller) fails(t *testing.T, method string, req proto.Message) *failure {
	t.Helper()
	f := c.begin(t, method, req).end(t, nil)
	if f == nil {
		t.Fatalf("%s succeeded, want an error", method)
	}
	return f
}
