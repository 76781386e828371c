package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// lookupJSON is what is known of a request id.
type lookupJSON struct {
	RequestID string      `json:"request_id"`
	Seen      string      `json:"seen"` // "answered", "not_seen", "maybe_forgotten"
	Player    string      `json:"player,omitempty"`
	Result    *resultJSON `json:"result,omitempty"`
	// Requests from before it may have been answered and forgotten.
	ForgottenBefore string `json:"forgotten_before,omitempty"`
}

func (a *app) resultCommand() *cobra.Command {
	var player string
	cmd := &cobra.Command{
		Use:   "result ID",
		Short: "Show the answer to an earlier request",
		Long: `Show the first answer to a request id. The command carries out nothing: if the
request never arrived, it does not happen now.

The exit code is 3 if there is no answer: the server has not seen the id, or may
have forgotten it. A request that is still on its way may get an answer later. To
be sure of an outcome, send the request again with the same --id.`,
		Example: `  kuji result 01JGY3ZQ8W0000000000000000
  kuji result order-1 --player ann   # shows the codes that ann got, too`,
		Args: exactArgs("ID"),
	}
	conn := a.clientCommand(cmd)
	cmd.Flags().StringVar(&player, "player", "", "whose request it was: shows the codes that it gave, to a key that may draw")
	cmd.RunE = conn.run(func(cmd *cobra.Command, c *client, args []string) error {
		resp, err := call(cmd.Context(), c, "", c.rewards.GetResult, &kujiv1.GetResultRequest{Realm: c.realm, RequestId: args[0], Player: player})
		if err != nil {
			return err
		}
		out := lookupJSON{RequestID: args[0], Seen: strings.ToLower(strings.TrimPrefix(resp.GetSeen().String(), "SEEN_")), Player: resp.GetPlayer()}
		if before := resp.GetForgottenBeforeUnixMs(); before != 0 {
			out.ForgottenBefore = timeText(before)
		}
		if resp.GetResult() != nil {
			res := newResultJSON(args[0], resp.GetResult())
			out.Result = &res
		}
		if err := a.print(out, func(w io.Writer) { printLookup(w, &out) }); err != nil || out.Result != nil {
			return err
		}
		return refusedError{out.missing()}
	})
	return cmd
}

// missing says why there is no answer.
func (l *lookupJSON) missing() string {
	if l.ForgottenBefore != "" {
		return fmt.Sprintf("request %s is not remembered; it may have been answered and forgotten, like any from before %s", l.RequestID, l.ForgottenBefore)
	}
	return fmt.Sprintf("request %s was not seen", l.RequestID)
}

func printLookup(w io.Writer, l *lookupJSON) {
	if l.Result == nil {
		fprintf(w, "request\t%s\nseen\t%s\n", l.RequestID, l.Seen)
		return
	}
	res := *l.Result
	printResult(w, drawsIn(res.Outcomes), res)
	if l.Player != "" {
		fprintf(w, "player\t%s\n", word(l.Player))
	}
	fprintf(w, "time\t%s\n", res.Receipt.Time)
}

// drawsIn returns how many draws gave these outcomes, as far as they tell.
func drawsIn(outcomes []outcomeJSON) int {
	if len(outcomes) == 0 {
		return 0
	}
	return int(outcomes[len(outcomes)-1].Draw) + 1
}
