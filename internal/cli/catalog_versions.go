package cli

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

type catalogsJSON struct {
	Catalogs []catalogVersionJSON `json:"catalogs"` // the newest first
	Oldest   uint64               `json:"oldest"`   // version that can be read
}

type catalogVersionJSON struct {
	Version  uint64 `json:"version"`
	Hash     string `json:"hash"` // hexadecimal
	Position uint64 `json:"position"`
	Time     int64  `json:"time"` // Unix milliseconds
	Name     string `json:"name,omitempty"`
	Items    uint32 `json:"items"`
	Pools    uint32 `json:"pools"`
	By       string `json:"by,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Metadata string `json:"metadata,omitempty"`
}

func (a *app) listCatalogsCommand() *cobra.Command {
	req := &kujiv1.ListCatalogsRequest{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the catalogs that were put in force, the newest first",
		Long: `List shows every catalog that was put in force in a realm, the newest first, with who
applied it and why. The log keeps them. If it was trimmed, the oldest in the list is
the catalog that was in force where the log now begins. The first list after a start
of the server reads the whole log, which can take a while.`,
		Example: `  kuji catalog list --realm summer
  kuji catalog list --before 40 --limit 20`,
		Args: exactArgs(),
	}
	conn := a.connection(cmd.Flags())
	cmd.Flags().Uint64Var(&req.Before, "before", 0, "only those below this `version`")
	cmd.Flags().Uint32Var(&req.Limit, "limit", 0, "how many at most (default 100, at most 1000)")
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, _ []string) error {
		req.Realm = c.realm
		resp, err := call(cmd.Context(), c, "", c.rewards.ListCatalogs, req)
		if err != nil {
			return err
		}
		out := catalogsJSON{Catalogs: []catalogVersionJSON{}, Oldest: resp.GetOldest()}
		for _, v := range resp.GetCatalogs() {
			out.Catalogs = append(out.Catalogs, catalogVersionJSON{
				Version: v.GetVersion(), Hash: hex.EncodeToString(v.GetHash()), Position: v.GetPosition(), Time: v.GetTimeUnixMs(), Name: v.GetName(),
				Items: v.GetItems(), Pools: v.GetPools(), By: v.GetBy(), Reason: v.GetReason(), Metadata: v.GetMetadata(),
			})
		}
		return a.print(out, func(w io.Writer) {
			fprintf(w, "VERSION\tAPPLIED\tPOSITION\tHASH\tITEMS\tPOOLS\tBY\tREASON\n")
			for _, v := range out.Catalogs {
				fprintf(w, "%d\t%s\t%d\t%s\t%d\t%d\t%s\t%s\n", v.Version, timeText(v.Time), v.Position, v.Hash[:12], v.Items, v.Pools, v.By, v.Reason)
			}
		})
	})
	return cmd
}

func (a *app) showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show VERSION",
		Short: "Print an older catalog as YAML",
		Long: `Show prints a catalog that was in force in a realm, as "kuji catalog export" prints
the one that is. "kuji apply --from-version VERSION" puts it in force again.`,
		Example: "  kuji catalog show 7 > catalog-7.yaml",
		Args:    exactArgs("VERSION"),
	}
	conn := a.connection(cmd.Flags())
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		version, err := parseVersion(args[0])
		if err != nil {
			return err
		}
		return a.exportCatalog(cmd.Context(), c, version)
	})
	return cmd
}

func parseVersion(text string) (uint64, error) {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil || version == 0 {
		return 0, usageError{fmt.Errorf("VERSION %q: expected a number from 1 on: see \"kuji catalog list\"", text)}
	}
	return version, nil
}

func (a *app) diffCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff OLD [NEW]",
		Short: "Show what differs between two catalogs",
		Long: `Diff shows what differs between two catalogs, as a plan does: settings before and after,
and what the next draw of a new player gives, through inner pools. OLD and NEW are
versions of a realm's catalog, or files. Without NEW, diff compares OLD with the catalog
in force. Diff does not know what was drawn; "kuji apply --dry-run" does.`,
		Example: `  kuji catalog diff 7
  kuji catalog diff 7 9
  kuji catalog diff 7 catalog.yaml
  kuji catalog diff old.yaml new.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactArgs("OLD")(cmd, args)
		},
	}
	conn := a.connection(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var both [2]*catalog.Catalog
		for i := range both {
			which := ""
			if i < len(args) {
				which = args[i]
			}
			c, err := a.versionOrFile(cmd.Context(), conn, which)
			if err != nil {
				return err
			}
			both[i] = c
		}
		plan, err := a.planOver(cmd.Context(), both[0], both[1])
		if err != nil {
			return err
		}
		out := diffJSON{Same: plan.Unchanged, Changes: []changeJSON{}}
		for i := range plan.Changes {
			if c := &plan.Changes[i]; c.Kind != kuji.ChangeNotice {
				out.Changes = append(out.Changes, changeJSON{Kind: string(c.Kind), ID: c.ID, Entry: c.Entry, Settings: c.Settings, Text: c.Text})
			}
		}
		return a.print(out, func(w io.Writer) {
			if out.Same {
				fprintf(w, "the same catalog\n")
			}
			for _, c := range out.Changes {
				c.print(w)
			}
		})
	}
	return cmd
}

type diffJSON struct {
	Same    bool         `json:"same"`
	Changes []changeJSON `json:"changes"`
}

// versionOrFile reads a catalog: a version of a server's, a file, or, for "", the one in force.
func (a *app) versionOrFile(ctx context.Context, conn *connection, which string) (*catalog.Catalog, error) {
	version, err := strconv.ParseUint(which, 10, 64)
	if which != "" && err != nil {
		return a.loadCatalog(which)
	}
	c, err := conn.dial()
	if err != nil {
		return nil, err
	}
	yaml, err := c.catalogOf(ctx, version)
	if err != nil {
		return nil, err
	}
	return parseCatalog("version "+which, yaml)
}

// catalogOf returns a version of the catalog as YAML; 0: the one in force.
func (c *client) catalogOf(ctx context.Context, version uint64) ([]byte, error) {
	resp, err := call(ctx, c, "", c.rewards.ExportCatalog, &kujiv1.ExportCatalogRequest{Realm: c.realm, Version: version})
	if err == nil && len(resp.GetYaml()) == 0 {
		err = errors.New("the server sent no catalog")
	}
	return resp.GetYaml(), err
}
