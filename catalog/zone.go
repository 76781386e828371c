package catalog

import (
	"cmp"
	_ "embed" // the names of zones
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // for machines without tables of their own; 450 kB of the binary
)

// Zone is the time zone whose days and weeks count. It has its offsets, so that a log means the same
// whatever tables a machine has: only Parse reads those. The zero value is UTC.
type Zone struct {
	Name    string   `json:"name"`              // in the IANA database, such as Asia/Tokyo; empty: UTC
	Offsets []Offset `json:"offsets,omitempty"` // by ascending From, the first from 0; the last holds from 2100 on
}

// Offset is by how much a zone's clocks are ahead of UTC from a moment on.
type Offset struct {
	From    int64 `json:"from"`    // Unix seconds
	Seconds int64 `json:"seconds"` // negative: west of Greenwich
}

const (
	MaxOffsets = 1024         // the most offsets of a time zone
	maxOffset  = 24*60*60 - 1 // the most seconds by which clocks differ from UTC
	zonesEnd   = 4102444800   // 2100-01-01T00:00:00Z in Unix seconds: no offset begins at it or later
	utc        = "UTC"
)

const zonePattern = `^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`

var zoneName = regexp.MustCompile(zonePattern)

// validZone reports whether a text can name a zone. Local is the zone of the machine.
func validZone(name string) bool {
	return len(name) <= MaxID && zoneName.MatchString(name) && name != "Local"
}

// zones are the names of the IANA database, one a line: see TestZones. They only serve for suggestions.
//
//go:embed zones.txt
var zones string

// likeZone asks for the zone that was probably meant by a name with wrong capitals, without its region, or
// with a slip. It returns "" if no zone is like it.
func likeZone(name string) string {
	spelt := strings.ReplaceAll(name, " ", "_")
	like := nearest(spelt, strings.FieldsSeq(zones))
	for zone := range strings.FieldsSeq(zones) {
		if strings.EqualFold(zone, spelt) || strings.EqualFold(zone[strings.LastIndexByte(zone, '/')+1:], spelt) {
			like = zone
			break
		}
	}
	if like == "" {
		return ""
	}
	return "did you mean " + like + "?"
}

// zoneShape is the name of a time zone.
type zoneShape struct{ *scalar[Zone] }

var zone = zoneShape{&scalar[Zone]{
	text: "a time zone of the IANA database, such as Asia/Tokyo", take: (*reader).text,
	parse: func(name string) (z Zone, like string, ok bool) {
		if name == utc {
			return z, "", true
		}
		if validZone(name) {
			if place, err := time.LoadLocation(name); err == nil {
				return Zone{Name: name, Offsets: offsets(place)}, "", true
			}
		}
		return z, likeZone(name), false
	},
	valid:  func(Zone) bool { return true },
	format: func(z Zone) string { return cmp.Or(z.Name, utc) },
	node:   schemaNode{Type: "string", MaxLength: MaxID, Pattern: zonePattern},
}}

// offsets returns the offsets of a place from 1970 to 2100.
func offsets(place *time.Location) (all []Offset) {
	for t := time.Unix(0, 0).In(place); ; {
		_, seconds := t.Zone()
		if o := (Offset{t.Unix(), int64(seconds)}); len(all) == 0 || all[len(all)-1].Seconds != o.Seconds {
			all = append(all, o)
		}
		_, end := t.ZoneBounds()
		if !end.IsZero() && !end.After(t) {
			end = t.Add(time.Hour) // Go 1.26 takes the last day of a leap year for one after its end
		}
		if end.IsZero() || end.Unix() >= zonesEnd {
			return all
		}
		t = end
	}
}

func (s zoneShape) check(k *report, z *Zone) {
	switch {
	case z.Name == "" && len(z.Offsets) == 0:
		return
	case z.Name == utc || !validZone(z.Name):
		k.fault("expected %s (none means UTC), found %s", s.expects(), quote(z.Name))
	case len(z.Offsets) < 1 || len(z.Offsets) > MaxOffsets || z.Offsets[0].From != 0:
		k.fault("expected 1 to %d offsets, the first from 1970 on, found %d", MaxOffsets, len(z.Offsets))
	}
	for i, o := range z.Offsets {
		k.enterPlace("offsets", i)
		if o.From < 0 || o.From >= zonesEnd || i > 0 && o.From <= z.Offsets[i-1].From {
			k.fault("expected ascending times before 2100, found %d", o.From)
		}
		if o.Seconds < -maxOffset || o.Seconds > maxOffset {
			k.fault("expected at most %d seconds, found %d", maxOffset, o.Seconds)
		}
		k.leave()
	}
}

func (z *Zone) code(x *coder) {
	if x.text(&z.Name, MaxID); z.Name != "" {
		many(x, &z.Offsets, MaxOffsets, 2, (*Offset).code)
	}
}

func (o *Offset) code(x *coder) {
	number(x, &o.From)
	ahead := o.Seconds + maxOffset
	if number(x, &ahead); x.reading {
		o.Seconds = ahead - maxOffset
	}
}
