package cli

import (
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/server/access"
)

type keyJSON struct {
	Key  string `json:"key"`  // give it to the client; it is nowhere else
	Line string `json:"line"` // append it to the server's key file
}

func keysCommand(a *app) *cobra.Command {
	var can, name string
	var realms, pools, grants []string
	var anyID bool
	var rate int
	add := &cobra.Command{
		Use:   "new --can COMMANDS --name NAME",
		Short: "Make an API key, and its line for the key file",
		RunE: func(*cobra.Command, []string) error {
			if can == "" || name == "" {
				return usagef("missing flag --can or --name: expected what the key may do, such as draw,read, and a name of one word")
			}
			var options []string
			add := func(name string, values ...string) {
				if len(values) > 0 {
					options = append(options, name+"="+strings.Join(values, ","))
				}
			}
			add("realms", realms...)
			add("pools", pools...)
			if rate != 0 {
				add("rate", strconv.Itoa(rate))
			}
			add("grants", grants...)
			if anyID {
				add("ids", "optional")
			}
			key := access.NewKey()
			line, err := access.KeyLine(can, key, name, options...)
			if err != nil {
				return usageError{err}
			}
			return a.print(keyJSON{key, line}, func(w io.Writer) {
				fprintf(w, "%s\n%s\n", key, line)
			})
		},
	}
	flags := add.Flags()
	flags.StringVar(&can, "can", "", "what the key may do: some of `commands` read, draw, redeem, register, grant, consume, transfer, progress, claim, collect, open_round, join, settle, reroll, cancel_round, confirm, cancel, link_code, link, unlink, chat, admin, with commas")
	flags.StringVar(&name, "name", "", "a `name` of one word, for people and for the log")
	flags.StringSliceVar(&realms, "realms", nil, "the only `realms` that the key is for (default all)")
	flags.StringSliceVar(&pools, "pools", nil, "the only `pools` that the key may draw from and read (default all)")
	flags.IntVar(&rate, "rate", 0, "how many commands and reads a second it may ask for (default no limit)")
	flags.StringSliceVar(&grants, "grants", nil, "the only `items` that it may grant, as item:N or item:N/M: N in a request, M in a day; * is every other item (default all)")
	flags.BoolVar(&anyID, "ids-optional", false, "take grants without a request id: a retry would grant twice")
	return group("keys", "Make API keys, and players' tokens", add, issuerCommand(a), tokenCommand(a))
}
