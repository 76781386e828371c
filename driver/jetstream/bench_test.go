package jetstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
)

// nodeVariable makes a process of this test binary a node: its options are in it.
const nodeVariable = "KUJI_TEST_NODE"

func TestMain(m *testing.M) {
	if options := os.Getenv(nodeVariable); options != "" {
		if err := runNode(options); err != nil {
			fmt.Fprintln(os.Stderr, err) // and nothing where its address is expected
		}
		return
	}
	m.Run()
}

// runNode is a node in a process of its own. It says when it is ready, and ends with its input.
func runNode(options string) error {
	var o embedded.Options
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return err
	}
	s, err := embedded.Start(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Ready(ctx); err != nil {
		return err
	}
	fmt.Println(s.Clients())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startProcesses starts three nodes and returns the addresses at which they take clients.
func startProcesses(t testing.TB) []string {
	t.Helper()
	peers := map[string]string{}
	for i, address := range freeAddresses(t, 3) {
		peers[fmt.Sprint("n", i+1)] = address
	}
	var outputs []*bufio.Reader
	for name, address := range peers {
		options, err := json.Marshal(embedded.Options{Dir: t.TempDir(), Cluster: "test", Node: name, Listen: address, Peers: peers, Secret: secret, MaxStore: 4 << 30})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), nodeVariable+"="+string(options))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			in.Close()
			cmd.Wait()
		})
		outputs = append(outputs, bufio.NewReader(out))
	}
	var addresses []string
	for _, out := range outputs {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, line[:len(line)-1])
	}
	return addresses
}

// BenchmarkAppend appends to realms on three nodes, each in its own process, all fsyncing.
func BenchmarkAppend(b *testing.B) {
	addresses := startProcesses(b)
	for _, c := range []struct{ realms, size int }{{1, 4 << 10}, {1, 64 << 10}, {1, 512 << 10}, {8, 4 << 10}, {8, 64 << 10}} {
		b.Run(fmt.Sprintf("realms=%d/entry=%dKiB", c.realms, c.size>>10), func(b *testing.B) {
			d, err := jetstream.Connect(b.Context(), jetstream.Options{
				URLs: []string{"nats://" + addresses[0]}, Connect: []nats.Option{nats.UserInfo("kuji", secret)}, Cluster: "bench"})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			realms := make([]driver.Realm, c.realms)
			for i := range realms {
				r, err := d.Open(b.Context(), fmt.Sprintf("r%d-%d-%d-%d", c.realms, c.size, b.N, i), driver.Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer r.Close()
				realms[i] = r
			}
			times := make([][]time.Duration, c.realms)
			b.SetBytes(int64(c.size))
			b.ResetTimer()
			var wg sync.WaitGroup
			for i, r := range realms {
				wg.Go(func() {
					entry := make([]byte, c.size)
					at := driver.Cursor(0)
					for n := i; n < b.N; n += c.realms {
						entry[n%len(entry)]++ // or it would be the same entry again
						began := time.Now()
						var err error
						if at, err = r.Append(b.Context(), at, entry); err != nil {
							b.Error(err)
							return
						}
						times[i] = append(times[i], time.Since(began))
					}
				})
			}
			wg.Wait()
			all := slices.Concat(times...)
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2])/1e3, "p50-us")
			b.ReportMetric(float64(all[len(all)*99/100])/1e3, "p99-us")
		})
	}
}

// BenchmarkPublish does the same without the driver: what a log on these servers can cost at least,
// one message at a time and with 64 on their way.
func BenchmarkPublish(b *testing.B) {
	addresses := startProcesses(b)
	conn, err := nats.Connect("nats://"+addresses[0], nats.UserInfo("kuji", secret))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	js, err := natsjs.New(conn, natsjs.WithPublishAsyncMaxPending(64))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := js.CreateStream(b.Context(), natsjs.StreamConfig{Name: "S", Subjects: []string{"s"}, Replicas: 3, Duplicates: time.Second}); err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{4 << 10, 64 << 10} {
		data := make([]byte, size)
		b.Run(fmt.Sprintf("one/entry=%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			times := make([]time.Duration, 0, b.N)
			for range b.N {
				began := time.Now()
				if _, err := js.Publish(b.Context(), "s", data); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2])/1e3, "p50-us")
			b.ReportMetric(float64(times[len(times)*99/100])/1e3, "p99-us")
		})
		b.Run(fmt.Sprintf("pipelined/entry=%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			acks := make([]natsjs.PubAckFuture, 0, b.N)
			for range b.N {
				ack, err := js.PublishAsync("s", data)
				if err != nil {
					b.Fatal(err)
				}
				acks = append(acks, ack)
			}
			for _, ack := range acks {
				select {
				case <-ack.Ok():
				case err := <-ack.Err():
					b.Fatal(err)
				}
			}
		})
	}
}
