package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/internal/demo"
)

func demoCommand(a *app) *cobra.Command {
	o := demo.Options{Say: a.say, Bar: a.showProgress}
	var keep, cluster bool
	var store string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See the promise kept: draws over the network, a kill -9 half-way, every answer checked",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if store != "" && store != demoStore {
				return usagef("--store %q: expected %s", store, demoStore)
			}
			cluster = cluster || store != ""
			if cluster && !cmd.Flags().Changed("load") {
				o.Load = clusterLoad
			}
			if err := cmp.Or(within("load", o.Load, time.Second, time.Hour), within("clients", o.Clients, 4, 1024)); err != nil {
				return err
			}
			return runDemo(cmd.Context(), a, o, cluster, store, keep)
		},
	}
	cmd.Flags().BoolVar(&cluster, "cluster", false, "draw from a cluster of three nodes on this machine, and kill one that leads")
	cmd.Flags().StringVar(&store, "store", "", "the same with three servers whose log a database keeps, which the demo starts: `postgres`")
	cmd.Flags().DurationVar(&o.Load, "load", 6*time.Second, fmt.Sprintf("how long to send draws; with --cluster or --store %v", clusterLoad))
	cmd.Flags().IntVar(&o.Clients, "clients", 64, "how many clients draw at a time")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the data directory and print where it is")
	return cmd
}

// demoStore is what can keep the log of a demo's cluster.
const demoStore = "postgres"

// clusterLoad is how long the demo of a cluster sends draws: until well after another node leads.
const clusterLoad = 20 * time.Second

func runDemo(ctx context.Context, a *app, o demo.Options, cluster bool, store string, keep bool) (err error) {
	dir, err := os.MkdirTemp("", "kuji-demo-")
	if err != nil {
		return err
	}
	kill := func() {}
	defer func() {
		kill()
		if keep {
			a.note("kuji: kept %s", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	if cluster {
		nodes := &threeNodes{app: a, dir: dir, store: store}
		o.Site, kill = nodes, nodes.kill
	} else {
		server := &alone{app: a, dir: dir}
		o.Site, kill = server, server.kill
	}
	report, err := demo.Run(ctx, o)
	if err != nil {
		return err
	}
	return finishDemo(a, report)
}

// finishDemo writes the report, and fails if a check failed.
func finishDemo(a *app, report *demo.Report) (err error) {
	if !report.OK {
		err = damageError{errors.New("a check failed: a promise is broken")}
	}
	return cmp.Or(a.print(report, func(w io.Writer) { printReport(w, report) }), err)
}

func printReport(w io.Writer, r *demo.Report) {
	fprintf(w, "\n")
	row := func(name, format string, args ...any) { fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("draws acknowledged", "%d, of %d requests; %d requests refused by the state, as they had to be", r.Draws, r.Requests, r.Refusals)
	row("draws/s", "%.0f, while the server was up, from %d clients", r.DrawsPerSecond, r.Clients)
	row("latency", "p50 %.2f ms, p99 %.2f ms", r.LatencyP50, r.LatencyP99)
	row("killed", "after %.2f s and %d draws; ready again after %.2f s", r.KilledAfter, r.AcknowledgedAtKill, r.Downtime)
	row("interrupted", "%d requests, sent again with the same ids: %d had happened before the crash", r.Interrupted, r.HadHappened)
	for _, rec := range r.Recovered {
		row("recovered position", "%d in realm %s, acknowledged up to %d", rec.Recovered, rec.Realm, rec.Acknowledged)
	}
	row("log", "%.1f bytes per draw, %d batches", r.LogBytesPerDraw, r.LogBatches)
	rows(w, "\nODDS OF "+strings.ToUpper(r.OddsPool)+" BEFORE PITY\tWANTED\tSEEN\tDRAWN", r.Odds, func(o demo.Odds) []any {
		return []any{o.Entry, fmt.Sprintf("%.3f%%", 100*o.Wanted), fmt.Sprintf("%.3f%%", 100*o.Seen), o.Drawn}
	})
	rows(w, "\nCHECK\tRESULT", r.Checks, func(c demo.Check) []any {
		if c.OK {
			return []any{c.Name, "ok: " + c.Detail}
		}
		return []any{c.Name, markup(strings.ReplaceAll(strings.Join(append([]string{"FAILED"}, c.Errors...), "\n"), "\n", "\n\t"))}
	})
}
