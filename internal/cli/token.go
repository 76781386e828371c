package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kuji-dev/kuji/server/access"
)

type issuerJSON struct {
	SigningKey string `json:"signing_key"` // the file with the private key
	JWKS       string `json:"jwks"`        // the file with the public key
	Line       string `json:"line"`        // append it to the server's key file
}

func issuerCommand(a *app) *cobra.Command {
	var can, dir, name, audience string
	var realms, pools []string
	var rate int
	cmd := &cobra.Command{
		Use:   "issuer NAME",
		Short: "Make a key that signs players' tokens, and its line for the key file",
		RunE: func(_ *cobra.Command, args []string) error {
			if !isFileName(args[0]) {
				return usagef("name %.80q: expected letters, digits, '-' and '_'", args[0])
			}
			if name == "" {
				name = args[0]
			}
			var options []string
			if len(realms) > 0 {
				options = append(options, "realms="+strings.Join(realms, ","))
			}
			if len(pools) > 0 {
				options = append(options, "pools="+strings.Join(pools, ","))
			}
			if rate != 0 {
				options = append(options, "rate="+strconv.Itoa(rate))
			}
			made := issuerJSON{SigningKey: filepath.Join(dir, args[0]+".jwk"), JWKS: filepath.Join(dir, args[0]+".jwks.json")}
			key := access.NewSigningKey(name, audience)
			line, err := key.Line(can, filepath.Base(made.JWKS), args[0], options...)
			if err != nil {
				return usageError{err}
			}
			made.Line = line
			if err := writeSigningKey(key, made); err != nil {
				return err
			}
			a.note("%s: the private key: anyone who has it can act as any player", made.SigningKey)
			a.note("%s: the public key, for the server: keep it in the directory of its key file", made.JWKS)
			return a.print(made, func(w io.Writer) { fprintf(w, "%s\n", line) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&can, "can", "read,draw", "what players may do: some of `commands` read, draw, redeem, register, consume, transfer, claim, collect, join, link_code, link, with commas")
	flags.StringVar(&dir, "out", ".", "`directory` for the two files: that of the key file")
	flags.StringVar(&name, "issuer", "", "`text` that tokens have as iss (default NAME)")
	flags.StringVar(&audience, "audience", "kuji", "`text` that tokens have as aud")
	flags.StringSliceVar(&realms, "realms", nil, "the only `realms` that players may use (default all)")
	flags.StringSliceVar(&pools, "pools", nil, "the only `pools` that players may draw from and read (default all)")
	flags.IntVar(&rate, "rate", 20, "how many commands and reads a second each player may ask for; 0: no limit")
	return cmd
}

type tokenJSON struct {
	Token   string    `json:"token"`
	Player  string    `json:"player"`
	Expires time.Time `json:"expires"`
}

func tokenCommand(a *app) *cobra.Command {
	var file, issuer, audience string
	var life time.Duration
	cmd := &cobra.Command{
		Use:   "token PLAYER",
		Short: "Sign a token for a player",
		RunE: func(_ *cobra.Command, args []string) error {
			if file == "" {
				return usagef("missing flag --signing-key: make one with \"kuji keys issuer NAME\"")
			}
			data, err := a.readFile(file, maxSecret)
			if err != nil {
				return err
			}
			key, err := access.ParseSigningKey(data)
			if err != nil {
				return usagef("--signing-key %s: %w", file, err)
			}
			now := a.now()
			token, err := key.For(issuer, audience).Sign(args[0], now, life)
			if err != nil {
				return usageError{err}
			}
			made := tokenJSON{token, args[0], now.Add(life).UTC().Truncate(time.Second)}
			return a.print(made, func(w io.Writer) { fprintf(w, "%s\n", token) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&file, "signing-key", "", "`file` with the private key, as \"kuji keys issuer\" writes it; - is standard input")
	flags.DurationVar(&life, "for", 15*time.Minute, fmt.Sprintf("how long the token is good, at most %.0fh", access.MaxTokenLife.Hours()))
	flags.StringVar(&issuer, "issuer", "", "`text` that the token has as iss (default: what the file says)")
	flags.StringVar(&audience, "audience", "", "`text` that the token has as aud (default: what the file says)")
	return cmd
}

// isFileName reports whether a name can begin the names of files, and be a word of the key file.
func isFileName(name string) bool {
	return name != "" && len(name) <= 64 && name[0] != '-' && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	})
}

// writeSigningKey writes a key into two files that are not there yet. If it fails, neither is there.
func writeSigningKey(key *access.SigningKey, to issuerJSON) error {
	private, err := key.Private()
	if err != nil {
		return err
	}
	public, err := key.Public()
	if err != nil {
		return err
	}
	if err := writeNew(to.SigningKey, private, 0o600); err != nil {
		return err
	}
	if err := writeNew(to.JWKS, public, 0o644); err != nil {
		return errors.Join(err, os.Remove(to.SigningKey))
	}
	return nil
}

// writeNew writes a file that is not there yet, durably.
func writeNew(name string, data []byte, mode os.FileMode) (err error) {
	f, err := os.OpenFile(filepath.Clean(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if errors.Is(err, os.ErrExist) {
		return refusedError{name + " is there already, and stays: expected another name, or another directory with --out"}
	}
	if err != nil {
		return usageError{err}
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(append(data, '\n')); err != nil {
		return err
	}
	return f.Sync()
}
