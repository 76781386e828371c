package catalog

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/kuji-dev/kuji/internal/format"
)

// Limits of displays.
const (
	DefaultLanguage  = "en" // of the texts of a catalog that names none
	MaxLanguages     = 32   // the most languages of one text
	MaxLanguage      = 11   // the longest language tag, in bytes
	MaxRarities      = 64   // the most rarities in a catalog
	MaxDescription   = 2048 // the longest description in one language, in bytes
	MaxIcon          = 512  // the longest address of an icon, in bytes
	MaxMetadata      = 16   // the most keys of one display's metadata
	MaxMetadataBytes = 1024 // the most bytes of its keys and values together
)

// Display is what people see of an item, a pool, a counter, a quest or a round, in addition to its name.
// No rule reads it. Everybody can.
type Display struct {
	Names       Texts      `json:"names,omitempty"`       // the name in several languages, the catalog's too; none: it has one
	Description Texts      `json:"description,omitempty"` //
	Rarity      string     `json:"rarity,omitempty"`      // one of the catalog's rarities; empty: none
	Icon        string     `json:"icon,omitempty"`        // a URL of http or https, or a path such as /icons/sword.png
	Metadata    []Metadata `json:"metadata,omitempty"`    // says nothing to Kuji
}

// Metadata is a key of a display's metadata, and its value as a text.
type Metadata struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Texts is one text in several languages, one of which is the catalog's; or one text without a language,
// which is in the catalog's.
type Texts []Text

// Text is a text in a language.
type Text struct {
	Language string `json:"language,omitempty"` // a tag such as en, pt-BR or zh-Hant
	Text     string `json:"text"`
}

// Rarity is how rare something is. Where it stands in the catalog says how rare that is.
type Rarity struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitempty"`
	Names Texts  `json:"names,omitempty"` // as in a Display
}

// DisplayKind says what a display is of.
type DisplayKind uint8

const (
	DisplayItem    DisplayKind = 1
	DisplayPool    DisplayKind = 2
	DisplayCounter DisplayKind = 3
	DisplayQuest   DisplayKind = 4
	DisplayRound   DisplayKind = 5
)

// Displayed is something of a catalog that people see.
type Displayed struct {
	Kind DisplayKind
	ID   string
	Name string // in the catalog's language; may be empty
	*Display
}

// Shown is a display in one language. What is not there is empty.
type Shown struct {
	Name, Description, Rarity, Icon string
	Metadata                        []Metadata
}

// Displays are all things that people see of a catalog: its items first, then its pools, counters, quests and
// rounds, each in the order of the catalog.
type Displays struct{ c *Catalog }

// DisplaysOf returns what people see of a catalog.
func DisplaysOf(c *Catalog) Displays { return Displays{c} }

// Len returns how many there are.
func (d Displays) Len() int {
	c := d.c
	return len(c.Items) + len(c.Pools) + len(c.Counters) + len(c.Quests) + len(c.Rounds)
}

// At returns one of them, from 0 on.
func (d Displays) At(i int) Displayed {
	c := d.c
	if i < len(c.Items) {
		it := &c.Items[i]
		return Displayed{DisplayItem, it.ID, it.Name, &it.Display}
	}
	if i -= len(c.Items); i < len(c.Pools) {
		p := &c.Pools[i]
		return Displayed{DisplayPool, p.ID, p.Name, &p.Display}
	}
	if i -= len(c.Pools); i < len(c.Counters) {
		n := &c.Counters[i]
		return Displayed{DisplayCounter, n.ID, n.Name, &n.Display}
	}
	if i -= len(c.Counters); i < len(c.Quests) {
		q := &c.Quests[i]
		return Displayed{DisplayQuest, q.ID, q.Name, &q.Display}
	}
	r := &c.Rounds[i-len(c.Quests)]
	return Displayed{DisplayRound, r.ID, r.Name, &r.Display}
}

// All yields all of them.
func (d Displays) All() iter.Seq[Displayed] {
	return func(yield func(Displayed) bool) {
		for i := range d.Len() {
			if !yield(d.At(i)) {
				return
			}
		}
	}
}

// TextLanguage returns the language of the texts that name none.
func (c *Catalog) TextLanguage() string { return cmp.Or(c.Language, DefaultLanguage) }

// Languages returns the languages of all displays: that of the catalog first, then the others in order.
func (d Displays) Languages() []string {
	c, known := d.c, map[string]bool{}
	add := func(all Texts) {
		for _, t := range all {
			known[cmp.Or(t.Language, c.TextLanguage())] = true
		}
	}
	add(c.Names)
	for i := range c.Rarities {
		add(c.Rarities[i].Names)
	}
	for one := range d.All() {
		add(one.Names)
		add(one.Description)
	}
	delete(known, c.TextLanguage())
	return append([]string{c.TextLanguage()}, slices.Collect(keys(known))...)
}

// Fallback returns the languages in which to look for a text, the wanted one first: zh-Hant-TW, zh-Hant, zh,
// and then the catalog's. Tags of BCP 47 are compared without regard to case. Of an empty one, the catalog's
// language is the only one.
func (d Displays) Fallback(wanted string) (all []string) {
	for tag := wanted; tag != ""; {
		all = append(all, tag)
		at := strings.LastIndexByte(tag, '-')
		if at < 0 {
			break
		}
		if tag = tag[:at]; len(tag) > 2 && tag[len(tag)-2] == '-' { // a singleton, which begins an extension
			tag = tag[:len(tag)-2]
		}
	}
	return append(all, d.c.TextLanguage())
}

// In returns the text in the first of some languages that it is in: see [Displays.Fallback]. Without any of
// them, it is the text that names no language, or else empty.
func (t Texts) In(languages []string) string {
	for _, l := range languages {
		for i := range t {
			if strings.EqualFold(t[i].Language, l) {
				return t[i].Text
			}
		}
	}
	return t.of("")
}

func (t Texts) of(language string) string {
	for i := range t {
		if t[i].Language == language {
			return t[i].Text
		}
	}
	return ""
}

// In returns what is shown in the first of some languages in which each text is: see [Displays.Fallback].
func (d Displayed) In(languages []string) Shown {
	return Shown{
		Name: cmp.Or(d.Names.In(languages), d.Name), Description: d.Description.In(languages),
		Rarity: d.Rarity, Icon: d.Icon, Metadata: d.Metadata,
	}
}

// NameIn returns the name of a rarity as [Displayed.In] does.
func (r *Rarity) NameIn(languages []string) string { return cmp.Or(r.Names.In(languages), r.Name) }

// Name returns the name of the catalog as [Displayed.In] does.
func (d Displays) Name(languages []string) string { return cmp.Or(d.c.Names.In(languages), d.c.Name) }

// languageTag is a language tag.
var languageTag = &scalar[string]{
	text: "a language tag such as en, pt-BR or zh-Hant", take: (*reader).text,
	parse:  func(text string) (string, string, bool) { return text, likeLanguage(text), true },
	valid:  validLanguage,
	format: yamlText,
	node:   schemaNode{Type: "string", MaxLength: MaxLanguage, Pattern: `^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$`},
}

// validLanguage reports whether s is a language, with or without a script and a region, in the case of BCP 47.
func validLanguage(s string) bool {
	parts := strings.Split(s, "-")
	within := func(s string, low, high byte) bool {
		return strings.IndexFunc(s, func(c rune) bool { return c < rune(low) || c > rune(high) }) < 0
	}
	if l := parts[0]; len(l) < 2 || len(l) > 3 || !within(l, 'a', 'z') {
		return false
	}
	parts = parts[1:]
	if len(parts) > 0 && len(parts[0]) == 4 && within(parts[0][:1], 'A', 'Z') && within(parts[0][1:], 'a', 'z') {
		parts = parts[1:]
	}
	if len(parts) > 0 && (len(parts[0]) == 2 && within(parts[0], 'A', 'Z') || len(parts[0]) == 3 && within(parts[0], '0', '9')) {
		parts = parts[1:]
	}
	return len(parts) == 0
}

// likeLanguage suggests a tag in place of one that is nearly right.
func likeLanguage(s string) string {
	parts := strings.Split(strings.ToLower(strings.ReplaceAll(s, "_", "-")), "-")
	for i, p := range parts[1:] {
		switch len(p) {
		case 2:
			parts[i+1] = strings.ToUpper(p)
		case 4:
			parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	if like := strings.Join(parts, "-"); like != s && validLanguage(like) {
		return fmt.Sprintf("did you mean %s?", like)
	}
	return ""
}

// turns reports whether a text has a character that changes the direction of what follows, and so can make a
// text look like another one.
func turns(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool { return c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069 })
}

const turning = "it has characters that change the direction of texts"

var oneDescription = &scalar[string]{
	text: fmt.Sprintf("a text of 1 to %d bytes", MaxDescription), take: (*reader).text,
	parse: func(text string) (string, string, bool) {
		if len(text) > MaxDescription {
			return "", fmt.Sprintf("it has %d bytes", len(text)), true
		}
		text = strings.TrimRight(text, "\n")
		return text, descriptionProblem(text), true
	},
	valid: func(v string) bool {
		return v != "" && len(v) <= MaxDescription && descriptionProblem(v) == "" && !strings.HasSuffix(v, "\n")
	},
	format: yamlText,
	node:   schemaNode{Type: "string", MinLength: 1, MaxLength: MaxDescription, Pattern: `^[^\x00-\x09\x0b-\x1f\x7f-\x9f]*$`},
}

// descriptionProblem says what keeps s from being a text of several lines, or nothing.
func descriptionProblem(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "it is not UTF-8"
	case strings.ContainsFunc(s, func(c rune) bool { return c != '\n' && unicode.IsControl(c) }):
		return "it has control characters"
	case turns(s):
		return turning
	}
	return ""
}

var iconAddress = &scalar[string]{
	text: fmt.Sprintf("an address such as https://example.com/sword.png or /icons/sword.png, of at most %d bytes", MaxIcon), take: (*reader).text,
	parse:  func(text string) (string, string, bool) { return text, iconProblem(text), true },
	valid:  func(v string) bool { return v != "" && iconProblem(v) == "" },
	format: yamlText,
	node: schemaNode{Type: "string", MinLength: 1, MaxLength: MaxIcon,
		Pattern: `^(https?://[!#-.0-;=?-\[\]_a-z~]|/([!#-.0-;=?-\[\]_a-z~]|$))[!#-;=?-\[\]_a-z~]*$`},
}

// iconProblem says what keeps s from being the address of an icon, or nothing.
func iconProblem(s string) string {
	rest, web := strings.CutPrefix(s, "https://")
	if !web {
		rest, web = strings.CutPrefix(s, "http://")
	}
	switch {
	case len(s) > MaxIcon:
		return fmt.Sprintf("it has %d bytes", len(s))
	case strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune("\"<>\\^`{|}", c) }):
		return "it has characters that an address does not have as they are"
	case web && (rest == "" || rest[0] == '/'):
		return "it names no host"
	case web:
		return ""
	case strings.HasPrefix(s, "//"):
		return "write https: before it"
	case !strings.HasPrefix(s, "/"):
		return "it begins with neither https://, http:// nor /"
	}
	return ""
}

// metadataValue is any scalar, kept as the text that stands there.
var metadataValue = &scalar[string]{
	text: "a text, a number, true or false",
	take: func(r *reader, n *yaml.Node, expects string) (string, bool) {
		s, ok := r.scalar(n, expects)
		if ok && n.Tag == "!!null" {
			r.mismatch(n, expects, "")
			return "", false
		}
		return s, ok
	},
	parse: func(text string) (string, string, bool) {
		if len(text) > MaxMetadataBytes {
			return text, fmt.Sprintf("it has %d bytes", len(text)), true
		}
		return text, descriptionProblem(text), true
	},
	valid:  func(v string) bool { return len(v) <= MaxMetadataBytes && descriptionProblem(v) == "" },
	format: yamlText,
	node: schemaNode{OneOf: []*schemaNode{
		{Type: "string", MaxLength: MaxMetadataBytes, Pattern: `^[^\x00-\x09\x0b-\x1f\x7f-\x9f]*$`}, {Type: "number"}, {Type: "boolean"},
	}},
}

// textsShape is one text, or a mapping from languages to it.
type textsShape struct{ one *scalar[string] }

func (s textsShape) expects() string {
	return s.one.text + ", or a mapping from languages, such as en or pt-BR, to such texts"
}

func (s textsShape) read(r *reader, n *yaml.Node, dst *Texts) {
	*dst = nil
	if n.Kind != yaml.MappingNode {
		var text string
		before := len(r.list)
		if s.one.read(r, n, &text); text != "" {
			*dst = Texts{{Text: text}}
		}
		if n.Kind != yaml.ScalarNode {
			r.widen(before, s.one.text, s.expects())
		}
		return
	}
	if !r.node(n) {
		return
	}
	if size := len(n.Content) / 2; size == 0 || size > MaxLanguages {
		r.fail(n, "expected texts in 1 to %d languages, found %d", MaxLanguages, size)
		return
	}
	var all Texts
	before := len(r.list)
	firstAt := map[string]int{} // the line of each language
	for i := 0; i+1 < len(n.Content) && !r.full(); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		language, ok := r.key(k)
		if !ok {
			continue
		}
		r.enter(language)
		switch line, dup := firstAt[language]; {
		case dup:
			r.fail(k, "duplicate language, already in line %d", line)
		case !validLanguage(language):
			r.mismatch(k, languageTag.text, likeLanguage(language))
		default:
			firstAt[language] = k.Line
			one := Text{Language: language}
			s.one.read(r, v, &one.Text)
			all = append(all, one)
		}
		r.leave()
	}
	if r.language != "" && firstAt[r.language] == 0 && len(r.list) == before {
		r.fail(n, "expected a text in %s, the language of the catalog, too: see the key language", r.language)
		return
	}
	if len(all) == 1 && all[0].Language == r.language {
		all[0].Language = ""
	}
	*dst = all
}

func (s textsShape) check(k *report, all *Texts) {
	if len(*all) == 1 && (*all)[0].Language == "" {
		s.one.check(k, &(*all)[0].Text)
		return
	}
	if n := len(*all); n < 2 || n > MaxLanguages {
		k.fault("expected one text without a language, or texts in 2 to %d, found %d", MaxLanguages, n)
		return
	}
	for i := range *all {
		t := &(*all)[i]
		k.enter(t.Language)
		switch {
		case !validLanguage(t.Language):
			k.faultOnKey("expected %s, found %s", languageTag.text, quote(t.Language))
		case slices.ContainsFunc((*all)[:i], func(o Text) bool { return o.Language == t.Language }):
			k.faultOnKey("duplicate language")
		case turns(t.Text):
			k.fault("expected %s, found one with characters that change the direction of texts", s.one.text)
		default:
			s.one.check(k, &t.Text)
		}
		k.leave()
	}
	if k.language != "" && all.of(k.language) == "" {
		k.fault("expected a text in %s, the language of the catalog, too", k.language)
	}
}

func (s textsShape) write(_ uint64, all *Texts) string {
	if len(*all) == 1 && (*all)[0].Language == "" {
		return s.one.format((*all)[0].Text)
	}
	return mappingOf(texts(*all, func(t *Text) string { return yamlID(t.Language) + ": " + s.one.format(t.Text) }))
}

func (s textsShape) schema(d definitions) *schemaNode {
	return &schemaNode{OneOf: []*schemaNode{s.one.schema(d), {
		Type: "object", PropertyNames: languageTag.schema(d), AdditionalProperties: s.one.schema(d), MinProperties: 1, MaxProperties: MaxLanguages,
	}}}
}

// nameShape is a name of a T, in one language or in several.
type nameShape[T any] struct {
	textsShape
	name  func(*T) *string
	names func(*T) *Texts
}

func (s nameShape[T]) read(r *reader, n *yaml.Node, dst *T) {
	var all Texts
	s.textsShape.read(r, n, &all)
	switch *s.names(dst) = nil; {
	case len(all) == 1:
		*s.name(dst) = all[0].Text
	case len(all) > 1:
		*s.name(dst), *s.names(dst) = all.of(r.language), all
	}
}

func (s nameShape[T]) check(k *report, v *T) {
	name, all := *s.name(v), *s.names(v)
	if len(all) == 0 {
		displayName.check(k, &name)
		return
	}
	before := len(k.list)
	s.textsShape.check(k, &all)
	if k.language != "" && len(k.list) == before && all.of(k.language) != name {
		k.fault("expected %s as the name in %s, found %s", quote(name), k.language, quote(all.of(k.language)))
	}
}

func (s nameShape[T]) write(scale uint64, v *T) string {
	if all := s.names(v); len(*all) > 0 {
		return s.textsShape.write(scale, all)
	}
	return yamlText(*s.name(v))
}

// nameKey is the key of a name.
func nameKey[T any](name func(*T) *string, names func(*T) *Texts, doc string) field[T] {
	return key[T, T]("name", nameShape[T]{textsShape{displayName}, name, names}, func(v *T) *T { return v }, doc).
		givenIf(func(v *T) bool { return *name(v) != "" || len(*names(v)) > 0 })
}

// displayFields are the keys of what people see of a T.
func displayFields[T any](name func(*T) *string, display func(*T) *Display) []field[T] {
	return []field[T]{
		nameKey(name, func(v *T) *Texts { return &display(v).Names }, "A name to show."),
		key[T, Texts]("description", textsShape{oneDescription}, func(v *T) *Texts { return &display(v).Description },
			"A text to show. It can have several lines."),
		key("rarity", id("a rarity"), func(v *T) *string { return &display(v).Rarity },
			"How rare it is: one of the catalog's rarities."),
		key("icon", iconAddress, func(v *T) *string { return &display(v).Icon },
			"The address of a picture: a URL of https or http, or a path such as /icons/sword.png."),
		key("metadata", dict[Metadata]{id("metadata"), part[Metadata, string]{metadataValue, func(m *Metadata) *string { return &m.Value }},
			func(m *Metadata) *string { return &m.Key }, MaxMetadata}, func(v *T) *[]Metadata { return &display(v).Metadata },
			fmt.Sprintf("What else a game wants to know of it. Values are kept as texts. All keys and values have at most %d bytes together.", MaxMetadataBytes)),
	}
}

// displayedAs puts the keys of a display before others.
func displayedAs[T any](name func(*T) *string, display func(*T) *Display, more ...field[T]) []field[T] {
	return append(displayFields(name, display), more...)
}

var rarityShape = mapping("rarity", "How rare something is. {} is enough.",
	nameKey(func(r *Rarity) *string { return &r.Name }, func(r *Rarity) *Texts { return &r.Names }, "A name to show."))

// readLanguage reads the language of the texts before them.
func (r *reader) readLanguage(root *yaml.Node) {
	r.language = DefaultLanguage
	if _, n := child(root, step{key: "language"}); n != nil {
		r.language = ""
		if n.Kind == yaml.ScalarNode && validLanguage(n.Value) {
			r.language = n.Value
		}
	}
}

// kindKeys are where the kinds of what is displayed stand in a catalog.
var kindKeys = map[DisplayKind]string{
	DisplayItem: "items", DisplayPool: "pools", DisplayCounter: "counters", DisplayQuest: "quests", DisplayRound: "rounds",
}

// checkDisplays checks what the table cannot say of displays.
func checkDisplays(k *check) {
	if k.c.Language == DefaultLanguage {
		k.faultAt("language", "expected none for %s", DefaultLanguage)
	}
	for d := range DisplaysOf(k.c).All() {
		bytes := 0
		for _, m := range d.Metadata {
			bytes += len(m.Key) + len(m.Value)
		}
		if bytes <= MaxMetadataBytes {
			continue
		}
		k.at(kindKeys[d.Kind], func() {
			k.at(d.ID, func() {
				k.faultAt("metadata", "expected at most %d bytes of keys and values together, found %d", MaxMetadataBytes, bytes)
			})
		})
	}
}

// displayWords returns the words about displays that a catalog uses.
func displayWords(c *Catalog) (all []format.Word) {
	used := map[string]bool{"language": c.Language != "", "rarities": len(c.Rarities) > 0, "name: by language": len(c.Names) > 0}
	for i := range c.Rarities {
		used["name: by language"] = used["name: by language"] || len(c.Rarities[i].Names) > 0
	}
	for d := range DisplaysOf(c).All() {
		for word, is := range map[string]bool{"name: by language": len(d.Names) > 0, "description": len(d.Description) > 0, "icon": d.Icon != "", "metadata": len(d.Metadata) > 0} {
			used[word] = used[word] || is
		}
	}
	for word := range keys(used) {
		if used[word] {
			all = append(all, format.Word{Of: "catalog", Name: word})
		}
	}
	return all
}

func (t *Text) code(x *coder) {
	x.ref(&t.Language)
	x.text(&t.Text, MaxDescription)
}

func (t *Texts) code(x *coder) { many(x, (*[]Text)(t), MaxLanguages, 2, (*Text).code) }

// code is what version 6 of the form says of something in addition.
func (d *Display) code(x *coder) {
	names, description, rarity, icon, metadata := len(d.Names) > 0, len(d.Description) > 0, d.Rarity != "", d.Icon != "", len(d.Metadata) > 0
	x.flags(&names, &description, &rarity, &icon, &metadata)
	if names {
		d.Names.code(x)
	}
	if description {
		d.Description.code(x)
	}
	if rarity {
		x.ref(&d.Rarity)
	}
	if icon {
		x.text(&d.Icon, MaxIcon)
	}
	if metadata {
		many(x, &d.Metadata, MaxMetadata, 2, func(m *Metadata, x *coder) {
			x.ref(&m.Key)
			x.text(&m.Value, MaxMetadataBytes)
		})
	}
	if names != (len(d.Names) > 0) || description != (len(d.Description) > 0) || rarity != (d.Rarity != "") || icon != (d.Icon != "") || metadata != (len(d.Metadata) > 0) {
		x.fail("expected a part of a display that is not empty")
	}
}

func (r *Rarity) code(x *coder) {
	x.ref(&r.ID)
	x.name(&r.Name)
	r.Names.code(x)
}

// codeTexts is what version 6 of the form says of a catalog in addition.
func codeTexts(c *Catalog, x *coder) {
	x.text(&c.Language, MaxLanguage)
	c.Names.code(x)
	many(x, &c.Rarities, MaxRarities, 3, (*Rarity).code)
}
