package cli

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"
)

// maxSettings bounds a file with settings, in bytes.
const maxSettings = 256 << 10

// settings gives flags values: by the command line, else a KUJI_ variable, else a file, else the default.
type settings struct {
	flags  *pflag.FlagSet
	getenv func(string) string
	from   map[string]string // where the value of a flag is from; absent: the command line, or it is the default
}

func newSettings(flags *pflag.FlagSet, getenv func(string) string) *settings {
	return &settings{flags, getenv, map[string]string{}}
}

// variable returns the name of the variable that stands for a flag.
func variable(flag string) string {
	return "KUJI_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// given tells whether a flag has a value that is not its default.
func (s *settings) given(flag string) bool { return s.flags.Changed(flag) }

// said names what gave a flag its value, for messages.
func (s *settings) said(flag string) string {
	if from := s.from[flag]; from != "" {
		return from
	}
	return "--" + flag
}

// set gives a flag a value unless it has one. from says where it is from.
func (s *settings) set(flag, value, from string) error {
	if s.given(flag) {
		return nil
	}
	if err := s.flags.Set(flag, value); err != nil {
		if want := expected[s.flags.Lookup(flag).Value.Type()]; want != "" {
			return usagef("%s %q: expected %s", from, value, want)
		}
		return usagef("%s: %w", from, err)
	}
	s.from[flag] = from
	return nil
}

// fromVariables gives flags without a value those of their variables; an empty variable is not set. Other
// KUJI_ variables are ignored: Kubernetes makes KUJI_PORT, for instance, for a service of that name.
func (s *settings) fromVariables(flags ...string) error {
	for _, flag := range flags {
		if value := s.getenv(variable(flag)); value != "" {
			if err := s.set(flag, value, "$"+variable(flag)); err != nil {
				return err
			}
		}
	}
	return nil
}

// either refuses two flags that say one thing. A variable of either does not count if there is a flag.
func (s *settings) either(a, b string) error {
	if !s.given(a) && !s.given(b) {
		if err := s.fromVariables(a, b); err != nil {
			return err
		}
	}
	if s.given(a) && s.given(b) {
		return usagef("%s and %s: give only one", s.said(a), s.said(b))
	}
	return nil
}

// fromFile gives flags without a value those of a YAML file. A key that is no flag's name is an error.
func (s *settings) fromFile(name string, data []byte, flags ...string) error {
	file, err := parseYAML(name, data)
	if err != nil {
		return err
	}
	return file.mapping(file.root, "settings, as in listen: 127.0.0.1:7700", func(key string, k, v *yaml.Node) error {
		if !slices.Contains(flags, key) {
			return file.errorf(k, "unknown setting %s; expected the name of a flag without its hyphens in front", key)
		}
		value, err := file.value(v, s.flags.Lookup(key))
		if err != nil {
			return err
		}
		return s.set(key, value, fmt.Sprintf("%s: %s", file.place(v), key))
	})
}

// value returns a value, or a list of values, as a flag writes it.
func (f *yamlFile) value(v *yaml.Node, flag *pflag.Flag) (string, error) {
	if v.Kind != yaml.SequenceNode {
		return f.scalar(v)
	}
	if _, ok := flag.Value.(pflag.SliceValue); !ok {
		return "", f.errorf(v, "%s: expected one value, not a list", flag.Name)
	}
	var all []string
	err := f.list(v, "a list", func(one *yaml.Node) error {
		text, err := f.scalar(one)
		if err == nil && strings.ContainsAny(text, "\",\n") {
			err = f.errorf(one, "%s: expected values without quotation marks and commas", flag.Name)
		}
		all = append(all, text)
		return err
	})
	return strings.Join(all, ","), err
}

var flagName = regexp.MustCompile(`--[a-z][a-z0-9-]*`)

// explain adds to an error about flags where those have their values from.
func (s *settings) explain(err error) error {
	usage, ok := errors.AsType[usageError](err)
	if !ok {
		return err
	}
	var notes []string
	for _, flag := range flagName.FindAllString(usage.Error(), -1) {
		if from := s.from[flag[2:]]; from != "" && !slices.Contains(notes, from) {
			notes = append(notes, from)
		}
	}
	if len(notes) == 0 {
		return err
	}
	return usagef("%w (set by %s)", err, strings.Join(notes, ", "))
}

// settingJSON is a setting in force.
type settingJSON struct {
	Name  string `json:"name"`
	Value any    `json:"value"` // as a flag writes it; a list if there can be several
	From  string `json:"from"`  // "flag", "default", or the variable or the place in a file
}

// print writes the settings in force, as YAML that --config reads, without secrets.
func (s *settings) print(a *app, flags []string) error {
	all := make([]settingJSON, 0, len(flags))
	for _, name := range flags {
		flag := s.flags.Lookup(name)
		one := settingJSON{Name: name, Value: shown(flag), From: s.from[name]}
		if one.From == "" {
			one.From = map[bool]string{true: "flag", false: "default"}[flag.Changed]
		}
		all = append(all, one)
	}
	return a.print(map[string]any{"settings": all}, func(w io.Writer) {
		for _, one := range all {
			value := fmt.Sprintf("%q", one.Value)
			if list, ok := one.Value.([]string); ok {
				value = "[" + strings.Join(each(list, strconv.Quote), ", ") + "]"
			}
			fprintf(w, "%s: %s\t# %s\n", one.Name, value, one.From)
		}
	})
}

// shown returns the value of a flag without secrets: a string, or a list if there can be several.
func shown(flag *pflag.Flag) any {
	list, ok := flag.Value.(pflag.SliceValue)
	if !ok {
		return withoutSecrets(flag.Value.String())
	}
	return each(list.GetSlice(), withoutSecrets)
}

// saysNoSecret are parameters of URLs whose values others may see. All others may be secrets.
var saysNoSecret = []string{"application_name", "connect_timeout", "dbname", "host", "passfile", "pool_max_conns", "port", "search_path",
	"sslcert", "sslkey", "sslmode", "sslrootcert", "target_session_attrs", "timezone", "tls", "user"}

// assigned finds what a text that is no URL says of a secret, as in host=db password=s3cret.
var assigned = regexp.MustCompile(`(?i)((?:passw(?:or)?d|pwd|secret|token|key)\s*=\s*)(?:'[^']*'|\S+)`)

// withoutSecrets returns a value with xxxxx for each possible secret. In a URL these are the password; without
// one, the user (a token), unless it is a database's; every parameter not in saysNoSecret; what follows a #.
func withoutSecrets(value string) string {
	scheme, _, ok := strings.Cut(value, "://")
	if !ok {
		return assigned.ReplaceAllString(value, "${1}xxxxx")
	}
	u, err := url.Parse(value)
	if err != nil || strings.Count(value, "@") > 1 {
		return scheme + "://xxxxx" // nobody can say where its password is
	}
	query := u.RawQuery
	if query != "" {
		u.RawQuery = strings.Join(each(strings.Split(query, "&"), hidden), "&")
	}
	_, password := u.User.Password()
	changed := password || u.RawQuery != query
	if u.User != nil && !password && !strings.HasPrefix(u.Scheme, "postgres") {
		u.User, changed = url.User("xxxxx"), true
	}
	if u.Fragment != "" {
		u.Fragment, u.RawFragment, changed = "xxxxx", "", true
	}
	if !changed {
		return value
	}
	return u.Redacted()
}

// hidden returns a parameter of a URL, with xxxxx in place of a value that may be a secret.
func hidden(parameter string) string {
	raw, _, given := strings.Cut(parameter, "=")
	if name, err := url.QueryUnescape(raw); err == nil && slices.Contains(saysNoSecret, name) {
		return parameter
	}
	return when(given, raw+"=") + "xxxxx"
}
