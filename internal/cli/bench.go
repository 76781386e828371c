package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kuji-dev/kuji/internal/loadtest"
)

type benchFlags struct {
	loadtest.Options
	sync, url, keyFile, dir string
}

func benchCommand(a *app) *cobra.Command {
	f := &benchFlags{Options: loadtest.Options{Say: a.say, Bar: a.showProgress}}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a server: draws a second, latencies, bytes of log, processor and memory",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd.Flags().Changed("sync")); err != nil {
				return usageError{err}
			}
			return runBench(cmd.Context(), a, f)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.Duration, "duration", 3*time.Second, "how long to measure each shape")
	flags.IntVar(&f.Players, "players", 100_000, "how many players draw")
	flags.IntVar(&f.Entries, "entries", 100, "how many entries the pool has")
	flags.StringVar(&f.sync, "sync", "always", "when to acknowledge: always (once fsynced), interval or none")
	flags.StringSliceVar(&f.Shapes, "shape", loadtest.Shapes(), "which `shapes` to measure")
	flags.IntVar(&f.Connections, "connections", 64, "connections of http and grpc, streams of stream-1")
	flags.StringVar(&f.url, "url", "", "measure the server at this `URL` instead of a new one")
	flags.StringVar(&f.keyFile, "key-file", "", "`file` with an admin's API key for --url (default $KUJI_KEY)")
	flags.StringVar(&f.dir, "dir", "", "make the data directory in this `directory`, to choose the disk to measure (default: the system's temporary directory)")
	flags.StringVar(&f.Profile, "profile", "", "write CPU profiles of server and client, for each shape, into this `directory`")
	flags.StringVar(&f.Plot, "plot", "", "write plots into this `directory` instead of measuring the shapes")
	return cmd
}

func (f *benchFlags) check(syncGiven bool) error {
	switch {
	case f.url == "" && f.keyFile != "":
		return errors.New("--key-file: only with --url; a server that bench starts has no keys")
	case f.url != "" && f.Profile != "":
		return errors.New("--url and --profile: give only one; bench can profile only a server that it starts")
	case f.url != "" && f.Plot != "":
		return errors.New("--url and --plot: give only one; plots need servers of their own")
	case f.url != "" && syncGiven:
		return errors.New("--url and --sync: give only one; the server at --url has a policy of its own")
	}
	if err := f.Check(); err != nil {
		return err
	}
	_, err := syncPolicy(f.sync)
	return err
}

func runBench(ctx context.Context, a *app, f *benchFlags) (err error) {
	if f.Dir, err = os.MkdirTemp(f.dir, "kuji-bench-"); errors.Is(err, fs.ErrNotExist) {
		return usagef("--dir %s: no such directory", f.dir)
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(f.Dir)) }()
	f.Start = f.start
	if f.url != "" {
		if f.Key, err = f.key(a); err != nil {
			return err
		}
		there := &loadtest.Server{URL: strings.TrimSuffix(f.url, "/"), Stop: func() error { return nil }}
		f.Start = func(context.Context, []string) (*loadtest.Server, error) { return there, nil }
	}
	if f.Plot != "" {
		report, err := loadtest.Plot(ctx, f.Options, thisBuild())
		if err != nil {
			return err
		}
		return a.print(report, func(w io.Writer) { printPlots(w, report) })
	}
	report, err := loadtest.Run(ctx, f.Options, thisBuild())
	if err != nil {
		return err
	}
	return a.print(report, func(w io.Writer) { printBench(w, report) })
}

// start starts a server with a data directory of its own.
func (f *benchFlags) start(ctx context.Context, env []string) (*loadtest.Server, error) {
	dir, err := os.MkdirTemp(f.Dir, "server-")
	if err != nil {
		return nil, err
	}
	args := []string{"--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--sync", f.sync, "--history", historyOff}
	if f.Profile != "" {
		args = append(args, "--pprof", "127.0.0.1:0")
	}
	server, err := startChild(ctx, filepath.Join(dir, "log"), env, args...)
	if err != nil {
		return nil, err
	}
	return &loadtest.Server{URL: server.ready.URL, PID: server.ready.PID, Pprof: server.ready.Pprof, Stop: func() error {
		server.kill() // nothing of it is wanted any more
		return os.RemoveAll(dir)
	}}, nil
}

// key returns the key for the server at --url, and says what is wrong with the flags.
func (f *benchFlags) key(a *app) (string, error) {
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	conn := a.connection(flags)
	conn.serverFlag = "--url"
	err := flags.Set("server", f.url)
	if f.keyFile != "" {
		err = errors.Join(err, flags.Set("key-file", f.keyFile))
	}
	if err != nil {
		return "", err
	}
	if _, err := conn.dial(); err != nil {
		return "", err
	}
	return conn.apiKey()
}

func printBench(w io.Writer, r *loadtest.Report) {
	fprintf(w, "\nmachine\t%s\n", r.Machine)
	fprintf(w, "build\t%s; server %s\n", r.Build, r.Server)
	fprintf(w, "setup\t%d players, %d entries, sync %s; client and server share the machine\n\n", r.Players, r.Entries, r.Sync)
	fprintf(w, "SHAPE\tCONNS\tSYNC\tDRAWS/S\tP50\tP90\tP99\tP99.9\tMAX\tLOG BYTES\tALLOCS\tGC CYCLES\tSERVER CPU\tCLIENT CPU\tPEAK MEMORY\n")
	fprintf(w, "\t\t\t\tms\tms\tms\tms\tms\tper draw\tper draw\tper M draws\ts\ts\tMB\n")
	for _, s := range r.Results {
		fprintf(w, "%s\t%d\t%s\t%.0f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.1f\t%.2f\t%.1f\t%.2f\t%.2f\t%.0f\n",
			s.Shape, s.Connections, s.Sync, s.DrawsPerSecond, s.P50, s.P90, s.P99, s.P999, s.Max, s.LogBytesPerDraw, s.AllocationsPerDraw,
			s.GCPerMillion, s.ServerCPU, s.ClientCPU, s.PeakMemory/1e6)
	}
	fprintf(w, "\nA draw counts once it is acknowledged. In the shapes stream and anonymous, a latency is that of a batch of\n%d draws, and connections are streams.\n", loadtest.StreamBatch)
}

func printPlots(w io.Writer, r *loadtest.PlotReport) {
	fprintf(w, "\nmachine\t%s\n", r.Machine)
	fprintf(w, "build\t%s\n", r.Build)
	fprintf(w, "setup\tshape stream, %d players, %d entries, sync %s, unless the row says otherwise\n\n", r.Players, r.Entries, r.Sync)
	fprintf(w, "WHAT GROWS\t\tDRAWS/S\tP99 ms\tSERVER CPU s\tPEAK MEMORY MB\tPLOT\n")
	for _, s := range r.Series {
		for _, p := range s.Points {
			fprintf(w, "%s\t%d\t%.0f\t%.3f\t%.2f\t%.0f\t%s\n", s.Name, p.X, p.Result.DrawsPerSecond, p.Result.P99, p.Result.ServerCPU, p.Result.PeakMemory/1e6, s.File)
		}
	}
}
