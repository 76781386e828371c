//go:build kuji_probe

package format

// probe makes this tree the next build: a level more, with a word that catalogs of that level can use, and a
// command that is taken for one of that level.
// Tests build the binary with it, so that two builds meet. Nobody else does.
var probe = []row{
	{Level: 7, Snapshot: 9, Catalog: 7, Words: []Word{{"catalog", "kind: probe"}, {"command", "set_track"}}},
}
