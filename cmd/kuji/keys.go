package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/server"
)

type keyJSON struct {
	Key  string `json:"key"`  // give it to the client; it is nowhere else
	Line string `json:"line"` // append it to the server's key file
}

func (a *app) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "keys",
		Short:   "Make API keys",
		GroupID: "server",
		Args:    cobra.NoArgs,
		RunE:    needsSubcommand,
	}
	var role, name string
	add := &cobra.Command{
		Use:   "new --role ROLE",
		Short: "Make an API key, and its line for the key file",
		Long: `New makes an API key of 256 random bits. The first line it prints is the key, for
the client. The second line is for the server's key file and holds only the key's
SHA-256. Nothing is stored: if you lose the key, make another.

Roles: read sees players, pools and catalogs; write also draws, grants, consumes
and transfers; admin also creates realms, applies catalogs and sets pity.`,
		Example: `  kuji keys new --role write --name shop
  kuji serve --keys keys.txt --data ./kuji-data`,
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			if role == "" {
				return usageError{fmt.Errorf("missing flag --role: expected one of %s", strings.Join(roles, ", "))}
			}
			if strings.ContainsAny(name, "\r\n") {
				return usageError{fmt.Errorf("--name %q: expected one line", name)}
			}
			if !slices.Contains(roles, role) {
				return usageError{fmt.Errorf("--role %q: expected one of %s", role, strings.Join(roles, ", "))}
			}
			key := server.NewKey()
			line, err := server.KeyLine(role, key, name)
			if err != nil {
				return usageError{err}
			}
			return a.print(keyJSON{key, line}, func(w io.Writer) {
				fprintf(w, "%s\n%s\n", key, line)
			})
		},
	}
	add.Flags().StringVar(&role, "role", "", "what the key may do: read, write or admin")
	add.Flags().StringVar(&name, "name", "", "a `name` for people, written next to the hash")
	cmd.AddCommand(add)
	return cmd
}

var roles = []string{"read", "write", "admin"}
