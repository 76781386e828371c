// Package kafkatest gives tests Kafka brokers: simulated ones in their own process, and a real one
// where $KUJI_KAFKA names a directory with its jars (see pom.xml) and Java is installed. Only tests
// import it.
package kafkatest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Each runs a test against each kind of brokers there is.
func Each(t *testing.T, test func(t *testing.T, hosts []string)) {
	t.Run("fake", func(t *testing.T) { test(t, Fake(t).ListenAddrs()) })
	t.Run("kafka", func(t *testing.T) { test(t, []string{kafka(t).plain}) })
}

// Fake starts brokers in this process.
func Fake(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append(opts, kfake.NumBrokers(2))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

var topics atomic.Int32

// Topic makes a topic and returns its name.
func Topic(t *testing.T, hosts []string, partitions int32, opts ...kgo.Opt) string {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(hosts...))...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	name := fmt.Sprint("test-", topics.Add(1))
	if _, err := kadm.NewClient(c).CreateTopic(t.Context(), partitions, 1, nil, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// Records returns all records of a topic, those of each partition in their order.
func Records(t *testing.T, hosts []string, topic string, opts ...kgo.Opt) (all []*kgo.Record) {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(hosts...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ends, err := kadm.NewClient(c).ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	want := int64(0)
	ends.Each(func(end kadm.ListedOffset) { want += end.Offset })
	for int64(len(all)) < want {
		f := c.PollFetches(t.Context())
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		all = append(all, f.Records()...)
	}
	return all
}

// shared is the real broker of this process's tests.
var shared struct {
	once sync.Once
	real broker
	err  error
	stop func()
}

// broker is where the real broker listens, and the certificate that its secure address shows.
type broker struct {
	plain, secure string
	cert          *certificate
}

// Stop stops the real broker, if it was started: call it at the end of TestMain.
func Stop() {
	if shared.stop != nil {
		shared.stop()
	}
}

// kafka returns where the real broker is.
func kafka(t *testing.T) broker {
	t.Helper()
	jars := os.Getenv("KUJI_KAFKA")
	if jars == "" {
		t.Skip("$KUJI_KAFKA names no directory with the jars of Kafka: see internal/kafkatest/pom.xml")
	}
	shared.once.Do(func() { shared.err = start(jars) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.real
}

const settings = `process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://%[1]s,SASL_SSL://%[2]s,CONTROLLER://%[3]s
advertised.listeners=PLAINTEXT://%[1]s,SASL_SSL://%[2]s
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
controller.quorum.voters=1@%[3]s
log.dirs=%[4]s
auto.create.topics.enable=false
ssl.keystore.type=PEM
ssl.keystore.location=%[5]s
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_%[6]s="%[7]s";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
`

// start starts the broker and waits until it answers.
func start(jars string) error {
	dir, err := os.MkdirTemp("", "kuji-kafka")
	if err != nil {
		return err
	}
	shared.stop = func() { os.RemoveAll(dir) }
	at, err := free()
	if err != nil {
		return err
	}
	if shared.real.cert, err = newCertificate(); err != nil {
		return err
	}
	store := filepath.Join(dir, "keystore.pem")
	if err := os.WriteFile(store, append(shared.real.cert.key, shared.real.cert.pem...), 0o600); err != nil {
		return err
	}
	file := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(file, fmt.Appendf(nil, settings, at[0], at[1], at[2], filepath.Join(dir, "data"), store, User, Password), 0o600); err != nil {
		return err
	}
	java := func(args ...string) *exec.Cmd {
		return exec.Command("java", append([]string{"-Xmx256m", "-cp", filepath.Join(jars, "*")}, args...)...)
	}
	format := []string{"kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", file}
	for _, m := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
		format = append(format, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", m, User, Password))
	}
	if out, err := java(format...).CombinedOutput(); err != nil {
		return fmt.Errorf("formatting: %w\n%s", err, out)
	}
	shared.real.plain, shared.real.secure = at[0], at[1]
	return run(java("kafka.Kafka", file), dir, at[0])
}

// free returns addresses at which nobody listens.
func free() (at [3]string, err error) {
	for i := range at {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return at, err
		}
		at[i] = l.Addr().String()
		defer l.Close() // when all are known
	}
	return at, nil
}

// run starts the broker's process.
func run(cmd *exec.Cmd, dir, host string) error {
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	shared.stop = func() {
		_ = cmd.Process.Kill()
		<-ended
		os.RemoveAll(dir)
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(host))
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for again := time.NewTicker(100 * time.Millisecond); ; {
		if _, err = kadm.NewClient(c).ListBrokers(ctx); err == nil {
			again.Stop()
			return nil
		}
		select {
		case <-again.C:
		case <-ended:
			return fmt.Errorf("kafka ended by itself: %s", said.String())
		case <-ctx.Done():
			return fmt.Errorf("kafka does not answer: %w", err)
		}
	}
}
