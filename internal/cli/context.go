package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/kuji-dev/kuji/client"
)

// serverContext is a server under a name. It holds no key, only the name of the file that does.
type serverContext struct {
	Server  string `yaml:"server" json:"server"`
	KeyFile string `yaml:"key-file,omitempty" json:"key_file,omitempty"`
	CA      string `yaml:"tls-ca,omitempty" json:"tls_ca,omitempty"`
	Realm   string `yaml:"realm,omitempty" json:"realm,omitempty"`
}

// contexts is the file of contexts.
type contexts struct {
	Current  string                   `yaml:"current,omitempty"` // the one in use; empty: none
	Contexts map[string]serverContext `yaml:"contexts,omitempty"`
}

var contextName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// contextsFile returns where the contexts of this user are.
func contextsFile(a *app) string { return filepath.Join(a.configDir, "kuji", "contexts.yaml") }

// loadContexts reads the contexts; without a file there are none.
func loadContexts(a *app) (*contexts, error) {
	all := &contexts{Contexts: map[string]serverContext{}}
	if a.configDir == "" {
		return all, nil
	}
	data, err := a.readFile(contextsFile(a), maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	file, err := parseYAML(contextsFile(a), data)
	if err != nil {
		return nil, err
	}
	context := func(name string, _, v *yaml.Node) error {
		var one serverContext
		err := file.keys(v, "a context, with its server", map[string]func(*yaml.Node) error{
			"server": file.text(&one.Server), "key-file": file.text(&one.KeyFile), "tls-ca": file.text(&one.CA), "realm": file.text(&one.Realm),
		})
		all.Contexts[name] = one
		return err
	}
	return all, file.keys(file.root, "current and contexts", map[string]func(*yaml.Node) error{
		"current":  file.text(&all.Current),
		"contexts": func(v *yaml.Node) error { return file.mapping(v, "contexts by name", context) },
	})
}

// get returns the context of a name.
func (all *contexts) get(name string) (serverContext, error) {
	one, ok := all.Contexts[name]
	if !ok {
		return one, refusedError{fmt.Sprintf("there is no context %q; there are: %s", name, strings.Join(all.names(), ", "))}
	}
	return one, nil
}

func (all *contexts) names() []string {
	names := slices.Sorted(maps.Keys(all.Contexts))
	if len(names) == 0 {
		return []string{"none"}
	}
	return names
}

// saveContexts replaces the file as a whole, so that a crash leaves the old one or the new one.
func saveContexts(a *app, all *contexts) error {
	if a.configDir == "" {
		return usagef("no directory for the settings of this user: neither $HOME nor $XDG_CONFIG_HOME is set")
	}
	data, err := yaml.Marshal(all)
	if err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	if len(data) > maxSettings {
		return usagef("the contexts would take %d bytes; %d are allowed: remove some", len(data), maxSettings)
	}
	name := contextsFile(a)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return replaceFile(name, data)
}

type contextsJSON struct {
	Current  string        `json:"current,omitempty"`
	Contexts []contextJSON `json:"contexts"`
}

type contextJSON struct {
	Name string `json:"name"`
	serverContext
}

func contextCommand(a *app) *cobra.Command {
	use := &cobra.Command{Use: "use NAME", Short: "Talk to the server of a context from now on"}
	remove := &cobra.Command{Use: "remove NAME", Short: "Forget a context"}
	list := &cobra.Command{Use: "list", Short: "Show all contexts, and which one is in use"}
	return group("context", "Name servers, and choose the one to talk to", contextAddCommand(a), onContexts(a, list, nil),
		onContexts(a, use, func(all *contexts, name string) error {
			all.Current = name
			_, err := all.get(name)
			return err
		}),
		onContexts(a, remove, func(all *contexts, name string) error {
			_, err := all.get(name)
			delete(all.Contexts, name)
			if all.Current == name {
				all.Current = ""
			}
			return err
		}))
}

func contextAddCommand(a *app) *cobra.Command {
	var one serverContext
	cmd := &cobra.Command{Use: "add NAME --server URL", Short: "Give a server a name"}
	flags := cmd.Flags()
	flags.StringVar(&one.Server, "server", "", "`URL` of the server (required)")
	flags.StringVar(&one.KeyFile, "key-file", "", "`file` that holds the API key and nothing else")
	flags.StringVar(&one.CA, "tls-ca", "", "`file` with the certificates (PEM) to trust, instead of the system's")
	flags.StringVar(&one.Realm, "realm", "", "`name` of the realm (default \"default\")")
	return onContexts(a, cmd, func(all *contexts, name string) error {
		if !contextName.MatchString(name) {
			return usagef("context %q: expected a name of a-z, 0-9, '.', '-' and '_'", name)
		}
		if err := checkContext(a, &one); err != nil {
			return err
		}
		if _, err := all.get(name); err == nil {
			return refusedError{fmt.Sprintf("there is a context %q already: remove it first", name)}
		}
		all.Contexts[name] = one
		return nil
	})
}

// checkContext reads what the context names, and names it from the root on.
func checkContext(a *app, one *serverContext) (err error) {
	if _, err := client.New(strings.Split(one.Server, ","), client.Options{}); err != nil {
		return usagef("--server %w", err)
	}
	for _, file := range []*string{&one.KeyFile, &one.CA} {
		if *file == "-" {
			return usagef("a context remembers the names of files: standard input has none")
		}
		if *file == "" {
			continue
		}
		if *file, err = filepath.Abs(*file); err != nil {
			return err
		}
	}
	if one.KeyFile != "" {
		if _, err := a.readKey("--key-file", one.KeyFile); err != nil {
			return err
		}
	}
	_, err = a.trust(one.CA)
	return err
}

// onContexts completes a command that changes something about one context, or nothing, and shows all.
func onContexts(a *app, cmd *cobra.Command, change func(all *contexts, name string) error) *cobra.Command {
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		all, err := loadContexts(a)
		if err == nil && change != nil {
			err = change(all, args[0])
		}
		if err == nil && change != nil {
			err = saveContexts(a, all)
		}
		if err != nil {
			return err
		}
		return printContexts(a, all)
	}
	return cmd
}

func printContexts(a *app, all *contexts) error {
	out := contextsJSON{all.Current, make([]contextJSON, 0, len(all.Contexts))}
	for _, name := range slices.Sorted(maps.Keys(all.Contexts)) {
		out.Contexts = append(out.Contexts, contextJSON{name, all.Contexts[name]})
	}
	return a.print(out, func(w io.Writer) {
		rows(w, "\tCONTEXT\tSERVER\tREALM\tKEY FILE", out.Contexts, func(c contextJSON) []any {
			return []any{when(c.Name == out.Current, "*"), c.Name, c.Server, c.Realm, c.KeyFile}
		})
	})
}
