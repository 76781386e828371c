package catalog

const (
	PerMonth  Per = 6
	PerSeason Per = 7
)

var monthWord = choice[Per]{"month", PerMonth, "The month, in the catalog's zone."}
var seasonWord = choice[Per]{"season", PerSeason, "The season that runs."}

func (k *check) seasonsApart() {}

type Season struct {
	ID           string
	Starts, Ends int64
}
