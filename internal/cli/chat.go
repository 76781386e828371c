package cli

import (
	"cmp"
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/chat"
	"github.com/kuji-dev/kuji/server"
)

// chatFlags say what messages of chats start.
type chatFlags struct{ chats []string }

func (f *chatFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.chats, "chat", nil, "`file` that says what messages of a chat start in the realm default; REALM=FILE for another realm")
}

// configs reads the files.
func (f *chatFlags) configs(a *app) (map[string]chat.Config, error) {
	all := make(map[string]chat.Config, len(f.chats))
	for _, one := range f.chats {
		realm, file, ok := strings.Cut(one, "=")
		if !ok {
			realm, file = "", one
		}
		realm = cmp.Or(realm, server.DefaultRealm)
		if _, twice := all[realm]; twice {
			return nil, usagef("--chat %s: there is a file for realm %s already", one, realm)
		}
		yaml, err := a.readFile(file, chat.MaxBytes)
		if err != nil {
			return nil, err
		}
		c, err := chat.Parse(yaml)
		if faults, ok := errors.AsType[*catalog.Errors](err); ok {
			return nil, usagef("bad chat\n%s:%s", file, strings.ReplaceAll(faults.Error(), "\n", "\n"+file+":"))
		}
		if err != nil {
			return nil, err
		}
		all[realm] = *c
	}
	return all, nil
}
