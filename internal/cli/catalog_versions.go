package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func listCatalogsCommand(a *app) *cobra.Command {
	req := &kujiv1.ListCatalogsRequest{}
	cmd := &cobra.Command{Use: "list", Short: "List the catalogs that were put in force, the newest first"}
	cmd.Flags().Uint64Var(&req.Before, "before", 0, "only those below this `version`")
	cmd.Flags().Uint32Var(&req.Limit, "limit", 0, "how many at most (default 100, at most 1000)")
	return read(a, cmd, req, (*api).ListCatalogs, func(w io.Writer, resp *kujiv1.ListCatalogsResponse) {
		rows(w, "VERSION\tAPPLIED\tPOSITION\tHASH\tITEMS\tPOOLS\tBY\tREASON", resp.GetCatalogs(), func(v *kujiv1.CatalogVersion) []any {
			return []any{v.GetVersion(), timeText(v.GetTimeUnixMs()), v.GetPosition(), fmt.Sprintf("%.6x", v.GetHash()), v.GetItems(), v.GetPools(),
				v.GetBy(), v.GetReason()}
		})
	})
}

func showCatalogCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "show VERSION", Short: "Print an older catalog as YAML"}
	return a.online(cmd, func(ctx context.Context, c *api, args []string) error {
		version, err := strconv.ParseUint(args[0], 10, 64)
		if err != nil || version == 0 {
			return usagef("VERSION %q: expected a number from 1 on: see \"kuji catalog list\"", args[0])
		}
		return exportCatalog(ctx, a, c, version)
	})
}

func diffCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "diff OLD [NEW]", Short: "Show what differs between two catalogs"}
	conn := a.connection(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var both [2]*catalog.Catalog
		for i := range both {
			which := ""
			if i < len(args) {
				which = args[i]
			}
			c, err := versionOrFile(cmd.Context(), a, conn, which)
			if err != nil {
				return err
			}
			both[i] = c
		}
		plan, err := planOver(cmd.Context(), a.now, both[0], both[1])
		if err != nil {
			return err
		}
		out := planMessage(&plan)
		out.Changes = slices.DeleteFunc(out.GetChanges(), func(c *kujiv1.Change) bool { return c.GetKind() == kujiv1.ChangeKind_CHANGE_KIND_NOTICE })
		for _, c := range out.GetChanges() {
			c.Warning = "" // a change of a realm can deserve a second look, a difference not
		}
		return a.print(out, func(w io.Writer) {
			if out.GetUnchanged() {
				fprintf(w, "the same catalog\n")
			}
			for _, c := range out.GetChanges() {
				printChange(w, c)
			}
		})
	}
	return cmd
}

// planMessage returns a plan as the API says it, for a realm in which nothing was drawn.
func planMessage(p *kuji.Plan) *kujiv1.Plan {
	out := &kujiv1.Plan{Unchanged: p.Unchanged}
	for _, c := range p.Changes {
		one := &kujiv1.Change{Id: c.ID, Entry: c.Entry, Text: c.Text, Warning: c.Warning}
		one.Kind = kujiv1.ChangeKind(kujiv1.ChangeKind_value["CHANGE_KIND_"+strings.ToUpper(string(c.Kind))])
		for _, s := range c.Settings {
			one.Settings = append(one.Settings, &kujiv1.Setting{Name: s.Name, Before: s.Before, After: s.After})
		}
		out.Changes = append(out.Changes, one)
	}
	return out
}

// versionOrFile reads a catalog: a version of a server's, a file, or, for "", the one in force.
func versionOrFile(ctx context.Context, a *app, conn *connection, which string) (*catalog.Catalog, error) {
	version, err := strconv.ParseUint(which, 10, 64)
	if which != "" && err != nil {
		return loadCatalog(a, which)
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
func (c *api) catalogOf(ctx context.Context, version uint64) ([]byte, error) {
	resp, err := c.ExportCatalog(ctx, &kujiv1.ExportCatalogRequest{Realm: c.realm, Version: version})
	if err == nil && len(resp.GetYaml()) == 0 {
		err = errors.New("the server sent no catalog")
	}
	return resp.GetYaml(), err
}

func namesCommand(a *app) *cobra.Command {
	req := &kujiv1.ListDisplaysRequest{}
	cmd := &cobra.Command{Use: "names", Short: "List the names and rarities of the catalog in force"}
	cmd.Flags().StringVar(&req.Language, "language", "", "language of the names, a `tag` such as de or pt-BR (default: that of the catalog)")
	cmd.Flags().Uint32Var(&req.Offset, "offset", 0, "how many to skip")
	cmd.Flags().Uint32Var(&req.Limit, "limit", 0, "how many at most (default 1000, at most 10000)")
	return read(a, cmd, req, (*api).ListDisplays, func(w io.Writer, resp *kujiv1.ListDisplaysResponse) {
		rarities := map[string]string{}
		for _, r := range resp.GetRarities() {
			rarities[r.GetId()] = cmp.Or(r.GetName(), r.GetId())
		}
		rows(w, "KIND\tID\tNAME\tRARITY", resp.GetDisplays(), func(d *kujiv1.Displayed) []any {
			rarity := d.GetDisplay().GetRarity()
			return []any{contract.Word(d.GetKind()), d.GetId(), d.GetDisplay().GetName(), cmp.Or(rarities[rarity], rarity)}
		})
		if next := resp.GetNextOffset(); next > 0 {
			fprintf(w, "\nand %d more: --offset %d\n", resp.GetDisplayCount()-next, next)
		}
	})
}
