// Package examples holds catalogs that work, with comments that teach the
// format. Its only code hands them out.
package examples

import "embed"

// Files holds the example catalogs: instant-win.yaml, gacha-banner.yaml,
// box-raffle.yaml, drop-table.yaml, boxes.yaml, collection.yaml, bottle-caps.yaml and
// campaign.yaml, quests.yaml, season.yaml, farm.yaml and rounds.yaml.
//
//go:embed *.yaml
var Files embed.FS
