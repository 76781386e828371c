package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/contract"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

func applyCommand(a *app) *cobra.Command {
	var dryRun, create, yes bool
	var expect, from uint64
	cmd := &cobra.Command{Use: "apply FILE | --from-version VERSION", Short: "Put a catalog in force, or show what that would change"}
	why := newReasons(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would change")
	cmd.Flags().BoolVar(&create, "create", false, "create the realm if it does not exist")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "apply despite the warnings of the plan")
	cmd.Flags().Uint64Var(&expect, "expect", 0, "`version` of the catalog that must be in force (default: any)")
	cmd.Flags().Uint64Var(&from, "from-version", 0, "`version` of the catalog to put in force again, instead of a file")
	return a.online(cmd, func(ctx context.Context, c *api, args []string) error {
		file, yaml, err := c.toApply(ctx, a, cmd.Flags().Changed("from-version"), from, args)
		if err != nil {
			return err
		}
		if create && !dryRun {
			if _, err := parseCatalog(file, yaml); err != nil { // no realm for a catalog that cannot be applied
				return err
			}
			if _, err := c.CreateRealm(ctx, &kujiv1.CreateRealmRequest{Realm: c.realm}); err != nil {
				return err
			}
		}
		req := &kujiv1.ApplyCatalogRequest{Realm: c.realm, Yaml: yaml, DryRun: true, Reason: why.reason, Metadata: why.metadata}
		if cmd.Flags().Changed("expect") {
			req.ExpectedVersion = &expect
		}
		return planAndApply(ctx, a, c, file, req, dryRun, yes)
	})
}

// planAndApply shows what a catalog changes, and applies it, unless it is a dry run or needs a second look.
func planAndApply(ctx context.Context, a *app, c *api, file string, req *kujiv1.ApplyCatalogRequest, dryRun, yes bool) error {
	resp, err := c.ApplyCatalog(ctx, req)
	if err != nil {
		return placed(file, err)
	}
	warned := countWarnings(resp.GetPlan())
	apply := !dryRun && (warned == 0 || yes)
	if apply {
		if !resp.GetPlan().GetUnchanged() {
			req.ExpectedVersion = proto.Uint64(resp.GetPlan().GetVersion() - 1)
		}
		req.DryRun = false
		if resp, err = c.ApplyCatalog(ctx, req); err != nil {
			return err
		}
	}
	if !dryRun && !apply {
		err = refusedError{fmt.Sprintf("not applied: %d of the changes deserve a second look. Repeat with --yes to apply them", warned)}
	}
	return cmp.Or(a.print(resp, func(w io.Writer) { printPlan(w, resp) }), err)
}

// toApply reads the catalog to apply, from a file or, again, from the realm's older ones.
func (c *api) toApply(ctx context.Context, a *app, again bool, version uint64, args []string) (name string, yaml []byte, err error) {
	switch {
	case again && len(args) > 0:
		return "", nil, usagef("unexpected argument %q: --from-version names the catalog", args[0])
	case again && version == 0:
		return "", nil, usagef("--from-version 0: expected a version from 1 on")
	case again:
		yaml, err = c.catalogOf(ctx, version)
		return fmt.Sprint("version ", version), yaml, err
	case len(args) == 0:
		return "", nil, usagef("missing argument FILE")
	}
	yaml, err = a.readFile(args[0], catalog.MaxBytes)
	return args[0], yaml, err
}

func countWarnings(p *kujiv1.Plan) (n int) {
	for _, c := range p.GetChanges() {
		if c.GetWarning() != "" {
			n++
		}
	}
	return n
}

func printPlan(w io.Writer, resp *kujiv1.ApplyCatalogResponse) {
	p := resp.GetPlan()
	switch {
	case p.GetUnchanged():
		fprintf(w, "unchanged: version %d is this catalog\n", p.GetVersion())
		return
	case resp.GetResult() != nil:
		fprintf(w, "applied as version %d at position %d\n", p.GetVersion(), resp.GetResult().GetReceipt().GetPosition())
	default:
		fprintf(w, "would become version %d\n", p.GetVersion())
	}
	for i, c := range p.GetChanges() {
		if i == 0 {
			fprintf(w, "\n")
		}
		printChange(w, c)
	}
	if p.GetKept() > 0 {
		fprintf(w, "\nentries that stay as they are: %d\n", p.GetKept())
	}
	if countWarnings(p) > 0 {
		fprintf(w, "\n")
	}
	printWarnings(w, p)
}

func printWarnings(w io.Writer, p *kujiv1.Plan) {
	for _, c := range p.GetChanges() {
		if c.GetWarning() != "" {
			fprintf(w, "warning: %s: %s\n", changed(c), c.GetWarning())
		}
	}
}

// changed names what a change is about.
func changed(c *kujiv1.Change) string { return strings.TrimSuffix(c.GetId()+"/"+c.GetEntry(), "/") }

// printChange writes a change with the settings that differ.
func printChange(w io.Writer, c *kujiv1.Change) {
	what, how, _ := strings.Cut(contract.Word(c.GetKind()), "_")
	mark := map[string]string{"added": "+", "removed": "-"}[how]
	switch {
	case what == "notice":
		return // it is a warning
	case mark == "":
		mark = "~"
	}
	if what == "counter" || what == "quest" { // the text says what becomes of it, too
		fprintf(w, "%s %s\n", mark, c.GetText())
		return
	}
	fprintf(w, "%s %s %s", mark, what, changed(c))
	switch before, after := c.GetBefore(), c.GetAfter(); {
	case before != nil && after != nil:
		fprintf(w, ": %d drawn, %s left before, %s after", c.GetDrawn(), leftText(before), leftText(after))
	case before != nil || after != nil:
		fprintf(w, ": %d drawn, %s left", c.GetDrawn(), leftText(cmp.Or(before, after)))
	}
	fprintf(w, "\n")
	for _, s := range c.GetSettings() {
		switch {
		case mark == "+":
			fprintf(w, "    %s: %s\n", s.GetName(), s.GetAfter())
		case mark == "-":
			fprintf(w, "    %s: %s\n", s.GetName(), s.GetBefore())
		default:
			fprintf(w, "    %s: %s -> %s\n", s.GetName(), cmp.Or(s.GetBefore(), "(not set)"), cmp.Or(s.GetAfter(), "(not set)"))
		}
	}
}

func leftText(s *kujiv1.EntryStock) string {
	return choose(s.GetUnlimited(), "unlimited", fmt.Sprintf("%d of %d", s.GetLeft(), s.GetStock()))
}
