//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kuji-dev/kuji/examples"
	"github.com/kuji-dev/kuji/internal/kafkatest"
	"github.com/kuji-dev/kuji/internal/pgtest"
	"github.com/kuji-dev/kuji/server/access"
)

// raceOptions keep a race-detecting binary from sleeping a second at each exit.
const raceOptions = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", raceOptions) // only makes the tests faster
	// Most of the time, tests of clusters wait for an election. So more of them run at a time than there
	// are processors; -parallel still decides.
	_ = flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0))))
	testscript.Main(suite{m}, map[string]func(){"kuji": func() { os.Exit(Main(time.Now)) }, jumpingKuji: mainJumping, natsServer: mainNATS})
}

// suite stops in the end what tests share.
type suite struct{ m *testing.M }

func (s suite) Run() int {
	defer pgtest.Stop()
	defer kafkatest.Stop()
	return s.m.Run()
}

// TestScript runs the sessions in testdata: each reads as a person at a
// terminal would write it. In addition to testscript's own commands there are
//
//	serve NAME ARG...       start "kuji serve --listen 127.0.0.1:0 ARG..." and set KUJI_SERVER and KUJI_ADDRESS
//	crash NAME              kill that server with SIGKILL
//	terminate NAME [CODE]   end it with SIGTERM; it must exit with 0, or CODE
//	hangup NAME TEXT        send it SIGHUP and wait until it has logged TEXT
//	log NAME REGEXP         a server's standard error has a line that matches
//	exits CODE PROG ARG...  run a program; it must exit with this code
//	until-stopped VAR PROG ARG...  run a program with ever new --id until it exits with 5 and /readyz
//	                        fails too (a slow disk alone also lets it exit with 5); VAR is the last id
//	http METHOD PATH [BODY] send a request to KUJI_SERVER; the answer is stdout
//	same FIRST AGAIN        two results of one request id, the second replayed
//	flip FILE OFFSET        flip one bit of a file
//	keyfile FILE            make read.key, write.key and admin.key, and a key file that knows them
//	append FILE FILE        write the second file at the end of the first
//	oldtoken KEY PLAYER FILE  write a token that expired an hour ago, of a key of "kuji keys issuer"
//	interrupt PROG ARG...   run the demo, or the bench, and press Ctrl-C in the middle
//	empty DIR               there is nothing in a directory
//	cert                    write cert.pem and key.pem for 127.0.0.1
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(name string) (bool, error) {
			if name == "postgres" {
				return databaseProgram("initdb") != "", nil
			}
			return false, fmt.Errorf("no condition is called %s", name)
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", raceOptions)
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/config")
			env.Values["servers"] = map[string]*exec.Cmd{}
			return os.CopyFS(env.WorkDir+"/examples", examples.Files)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": serveCmd, "crash": crashCmd, "terminate": terminateCmd, "hangup": hangupCmd, "log": logCmd,
			"exits": exitsCmd, "until-stopped": untilStoppedCmd, "http": httpCmd, "same": sameCmd, "flip": flipCmd, "cert": certCmd,
			"keyfile": keyfileCmd, "append": appendCmd, "oldtoken": oldTokenCmd, "interrupt": interruptCmd, "empty": emptyCmd,
		},
	})
}

func servers(ts *testscript.TestScript) map[string]*exec.Cmd {
	return ts.Value("servers").(map[string]*exec.Cmd)
}

func command(ts *testscript.TestScript, args ...string) *exec.Cmd {
	path, err := exec.LookPath(args[0])
	ts.Check(err)
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = os.Environ()
	for _, name := range []string{"KUJI_SERVER", "KUJI_KEY", "KUJI_CONTEXT", "KUJI_REALM", "XDG_CONFIG_HOME", "HOME", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	return cmd
}

func serveCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve NAME ARG...")
	}
	cmd := command(ts, append([]string{"kuji", "serve", "--json", "--listen", "127.0.0.1:0"}, args[1:]...)...)
	stderr := newLines()
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		err = errors.Join(err, cmd.Wait())
		ts.Fatalf("kuji serve: %v\n%s", err, stderr)
	}
	var ready readyJSON
	ts.Check(json.Unmarshal(line, &ready))
	if ready.URL == "" {
		ts.Fatalf("kuji serve: %s", line)
	}
	ts.Setenv("KUJI_SERVER", ready.URL)
	ts.Setenv("KUJI_ADDRESS", ready.Address)
	servers(ts)[args[0]] = cmd
}

func running(ts *testscript.TestScript, args []string) *exec.Cmd {
	if len(args) != 1 || servers(ts)[args[0]] == nil {
		ts.Fatalf("want the name of a server, got %q", args)
	}
	return servers(ts)[args[0]]
}

func crashCmd(ts *testscript.TestScript, _ bool, args []string) {
	cmd := running(ts, args)
	ts.Check(cmd.Process.Kill())
	_ = cmd.Wait() // it was killed: the error says so
}

func terminateCmd(ts *testscript.TestScript, _ bool, args []string) {
	want := "0"
	if len(args) == 2 {
		args, want = args[:1], args[1]
	}
	cmd := running(ts, args)
	ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait() // the exit code says it
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != want {
		ts.Fatalf("kuji serve exits with %s, want %s\n%v", got, want, cmd.Stderr)
	}
}

func hangupCmd(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: hangup NAME TEXT")
	}
	cmd := running(ts, args[:1])
	before := len(cmd.Stderr.(*lines).String())
	ts.Check(cmd.Process.Signal(syscall.SIGHUP))
	if !cmd.Stderr.(*lines).wait(before, args[1], 20*time.Second) {
		ts.Fatalf("%q was not logged:\n%v", args[1], cmd.Stderr)
	}
}

func logCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: log NAME REGEXP")
	}
	text := running(ts, args[:1]).Stderr.(*lines).String()
	if !regexp.MustCompile("(?m)" + args[1]).MatchString(text) {
		ts.Fatalf("%q was not logged:\n%s", args[1], text)
	}
}

// lines gathers what a process writes and can wait for a text in it.
type lines struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed and made anew with each write
}

func newLines() *lines { return &lines{changed: make(chan struct{})} }

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wait returns true as soon as text was written behind the first bytes, false
// when the time is up.
func (l *lines) wait(behind int, text string, timeout time.Duration) bool {
	deadline := time.After(timeout)
	for {
		l.mu.Lock()
		found, changed := strings.Contains(l.text.String()[behind:], text), l.changed
		l.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-changed:
		case <-deadline:
			return false
		}
	}
}

func exitsCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	cmd := command(ts, args[1:]...)
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("%s exits with %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

func untilStoppedCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until-stopped VAR PROGRAM ARG...")
	}
	const tries = 100
	for n := range tries {
		id := fmt.Sprintf("until-%d", n)
		cmd := command(ts, append(args[1:], "--id", id)...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // the exit code says it
		if exitCode(cmd.ProcessState.ExitCode()) != exitUnreachable || ready(ts) {
			continue
		}
		_, err := stdout.WriteTo(ts.Stdout())
		ts.Check(err)
		_, err = stderr.WriteTo(ts.Stderr())
		ts.Check(err)
		ts.Setenv(args[0], id)
		return
	}
	ts.Fatalf("has not stopped after %d requests", tries)
}

// ready tells whether every realm of the server takes requests.
func ready(ts *testscript.TestScript) bool {
	resp, err := http.Get(ts.Getenv("KUJI_SERVER") + "/readyz")
	ts.Check(err)
	ts.Check(resp.Body.Close())
	return resp.StatusCode == http.StatusOK
}

func httpCmd(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: http METHOD PATH [BODY]")
	}
	req, err := http.NewRequest(args[0], ts.Getenv("KUJI_SERVER")+args[1], strings.NewReader(strings.Join(args[2:], " ")))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	if key := ts.Getenv("KUJI_KEY"); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	_, err = fmt.Fprintf(ts.Stdout(), "%s\n%s\n", resp.Status, body)
	ts.Check(err)
	if bad := resp.StatusCode >= 400; bad != neg {
		ts.Fatalf("%s %s: %s\n%s", args[0], args[1], resp.Status, body)
	}
}

func sameCmd(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same FIRST AGAIN")
	}
	var results [2]map[string]any
	for i, name := range args {
		var answer struct{ Result map[string]any }
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(name)), &answer))
		results[i] = answer.Result
	}
	if results[0]["replayed"] != nil || results[1]["replayed"] != true {
		ts.Fatalf("replayed is %v and %v, want false and true", results[0]["replayed"], results[1]["replayed"])
	}
	delete(results[0], "replayed")
	delete(results[1], "replayed")
	if diff := cmp.Diff(results[0], results[1]); diff != "" {
		ts.Fatalf("the second answer differs from the first:\n%s", diff)
	}
}

func flipCmd(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: flip FILE OFFSET|TEXT")
	}
	name := ts.MkAbs(args[0])
	data, err := os.ReadFile(name)
	ts.Check(err)
	at, err := strconv.Atoi(args[1])
	if err != nil {
		if at = bytes.Index(data, []byte(args[1])); at < 0 {
			ts.Fatalf("%s does not have %q", args[0], args[1])
		}
	}
	data[at] ^= 1
	ts.Check(os.WriteFile(name, data, 0o600))
}

func certCmd(ts *testscript.TestScript, _ bool, _ []string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:        true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

func keyfileCmd(ts *testscript.TestScript, _ bool, args []string) {
	var file bytes.Buffer
	for role, can := range map[string]string{"read": "read", "write": "read,draw,grant,consume,transfer,progress,claim,join", "admin": "admin"} {
		out, err := command(ts, "kuji", "keys", "new", "--can", can, "--name", role, "--json").Output()
		ts.Check(err)
		var made keyJSON
		ts.Check(json.Unmarshal(out, &made))
		ts.Check(os.WriteFile(ts.MkAbs(role+".key"), []byte(made.Key+"\n"), 0o600))
		fmt.Fprintln(&file, made.Line)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), file.Bytes(), 0o600))
}

func appendCmd(ts *testscript.TestScript, _ bool, args []string) {
	all := ts.ReadFile(args[0]) + ts.ReadFile(args[1])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(all), 0o600))
}

func oldTokenCmd(ts *testscript.TestScript, _ bool, args []string) {
	key, err := access.ParseSigningKey([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	token, err := key.Sign(args[1], time.Now().Add(-2*time.Hour), time.Hour)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(token), 0o600))
}

// interruptCmd presses Ctrl-C as soon as clients draw: the program has to end with
// 130, take its server with it and leave nothing behind.
func interruptCmd(ts *testscript.TestScript, _ bool, args []string) {
	cmd := command(ts, args...)
	stdout, err := cmd.StdoutPipe()
	ts.Check(err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	ts.Check(cmd.Start())
	ts.Defer(func() { _ = cmd.Process.Kill() })
	pid := 0
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		_, _ = fmt.Sscanf(lines.Text(), "server %d serves", &pid) // on some line
		if strings.Contains(lines.Text(), "clients draw for") || strings.Contains(lines.Text(), "measuring") {
			ts.Check(cmd.Process.Signal(os.Interrupt))
		}
	}
	_ = cmd.Wait() // the exit code says it
	if code := cmd.ProcessState.ExitCode(); code != int(exitInterrupted) {
		ts.Fatalf("exit code %d, want %d\n%s", code, exitInterrupted, stderr.Bytes())
	}
	if pid == 0 {
		ts.Fatalf("no server was named")
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		ts.Fatalf("server %d is still there: %v", pid, err)
	}
}

func emptyCmd(ts *testscript.TestScript, _ bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(entries) > 0 {
		ts.Fatalf("%s holds %v", args[0], entries)
	}
}
