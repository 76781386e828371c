package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// proposalCommands are about catalogs that wait until somebody else approves them.
func proposalCommands(a *app) []*cobra.Command {
	return []*cobra.Command{proposeCommand(a), proposalsCommand(a), proposalCommand(a), approveCommand(a), withdrawCommand(a)}
}

func proposeCommand(a *app) *cobra.Command {
	var expect uint64
	cmd := &cobra.Command{Use: "propose FILE", Short: "Propose a catalog, which another key must approve"}
	why := newReasons(cmd)
	cmd.Flags().Uint64Var(&expect, "expect", 0, "`version` of the catalog that must be in force (default: any)")
	return a.online(cmd, func(ctx context.Context, c *api, args []string) error {
		yaml, err := a.readFile(args[0], catalog.MaxBytes)
		if err != nil {
			return err
		}
		req := &kujiv1.ProposeCatalogRequest{Realm: c.realm, Yaml: yaml, Reason: why.reason, Metadata: why.metadata}
		if cmd.Flags().Changed("expect") {
			req.ExpectedVersion = &expect
		}
		resp, err := c.ProposeCatalog(ctx, req)
		if err != nil {
			return placed(args[0], err)
		}
		return a.print(resp, func(w io.Writer) {
			printProposal(w, resp.GetProposal())
			printProposed(w, resp.GetPlan())
		})
	})
}

func proposalsCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "proposals", Short: "List the catalogs that wait for approval"}
	return read(a, cmd, &kujiv1.ListProposalsRequest{}, (*api).ListProposals, func(w io.Writer, resp *kujiv1.ListProposalsResponse) {
		rows(w, "PROPOSAL\tOVER\tPROPOSED\tHASH\tNAME\tBY\tREASON", resp.GetProposals(), func(p *kujiv1.Proposal) []any {
			return []any{p.GetNumber(), p.GetOverVersion(), timeText(p.GetTimeUnixMs()), fmt.Sprintf("%.6x", p.GetHash()), p.GetName(), p.GetBy(), p.GetReason()}
		})
	})
}

func proposalCommand(a *app) *cobra.Command {
	var yaml bool
	req := &kujiv1.GetProposalRequest{}
	cmd := &cobra.Command{Use: "proposal NUMBER", Short: "Show a catalog that waits for approval, and what it would change"}
	cmd.Flags().BoolVar(&yaml, "yaml", false, "print the catalog as YAML instead")
	return read(a, cmd, req, (*api).GetProposal, func(w io.Writer, resp *kujiv1.GetProposalResponse) {
		if yaml {
			_, _ = w.Write(resp.GetYaml())
			return
		}
		printProposal(w, resp.GetProposal())
		if resp.GetPlan() == nil {
			fprintf(w, "\nit does not fit the catalog in force any more\n")
			return
		}
		printProposed(w, resp.GetPlan())
	})
}

func approveCommand(a *app) *cobra.Command {
	req := &kujiv1.ApproveCatalogRequest{}
	cmd := &cobra.Command{Use: "approve NUMBER", Short: "Put a proposed catalog in force"}
	why := newReasons(cmd)
	return read(a, cmd, req, func(c *api, ctx context.Context, req *kujiv1.ApproveCatalogRequest) (*kujiv1.ApproveCatalogResponse, error) {
		req.Reason, req.Metadata = why.reason, why.metadata
		return c.ApproveCatalog(ctx, req)
	}, func(w io.Writer, resp *kujiv1.ApproveCatalogResponse) {
		r := resp.GetResult().GetReceipt()
		fprintf(w, "applied as version %d at position %d\n", r.GetCatalogVersion(), r.GetPosition())
	})
}

func withdrawCommand(a *app) *cobra.Command {
	req := &kujiv1.WithdrawProposalRequest{}
	cmd := &cobra.Command{Use: "withdraw NUMBER", Short: "Drop a catalog that waits for approval"}
	why := newReasons(cmd)
	return read(a, cmd, req, func(c *api, ctx context.Context, req *kujiv1.WithdrawProposalRequest) (*kujiv1.WithdrawProposalResponse, error) {
		req.Reason, req.Metadata = why.reason, why.metadata
		return c.WithdrawProposal(ctx, req)
	}, func(w io.Writer, resp *kujiv1.WithdrawProposalResponse) {
		fprintf(w, "%s\n", choose(resp.GetWithdrawn(), "withdrawn", "no such proposal waits"))
	})
}

func printProposal(w io.Writer, p *kujiv1.Proposal) {
	fprintf(w, "proposal %d over version %d, at position %d\n", p.GetNumber(), p.GetOverVersion(), p.GetPosition())
	if p.GetBy() != "" || p.GetReason() != "" {
		fprintf(w, "by %s: %s\n", word(p.GetBy()), p.GetReason())
	}
}

// printProposed prints what a proposal would change.
func printProposed(w io.Writer, p *kujiv1.Plan) {
	fprintf(w, "\n")
	for _, c := range p.GetChanges() {
		printChange(w, c)
	}
	if p.GetKept() > 0 {
		fprintf(w, "\nentries that stay as they are: %d\n", p.GetKept())
	}
}
