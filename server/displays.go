package server

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// ListDisplays returns what people see of the catalog in force.
func (h catalogs) ListDisplays(ctx context.Context, req *kujiv1.ListDisplaysRequest) (*kujiv1.ListDisplaysResponse, error) {
	v, err := realmOf(ctx).Catalogs().InForce(ctx)
	if err != nil {
		return nil, err
	}
	show, err := message.NewShower(v.Catalog, req.GetLanguage())
	if err != nil {
		return nil, err
	}
	for i, kind := range req.GetKinds() {
		if kujiv1.DisplayKind_name[int32(kind)] == "" || kind == kujiv1.DisplayKind_DISPLAY_KIND_UNSPECIFIED {
			return nil, &kuji.Error{Code: kuji.CodeInvalid, Field: fmt.Sprintf("kinds[%d]", i), Message: fmt.Sprintf("%d; want one of the kinds of displays", kind)}
		}
	}
	var asked []int
	if v.Catalog != nil {
		asked = displaysAsked(v.Catalog, req.GetKinds(), accessOf(ctx).Pools())
	}
	from, to, err := page("limit", req.GetOffset(), req.GetLimit(), len(asked))
	if err != nil || v.Catalog == nil {
		return &kujiv1.ListDisplaysResponse{}, err
	}
	out := &kujiv1.ListDisplaysResponse{CatalogVersion: v.Version, Name: show.Name(), DisplayCount: uint32(len(asked))}
	if req.GetOffset() == 0 {
		out.Languages, out.Rarities = catalog.DisplaysOf(v.Catalog).Languages(), message.Each(v.Catalog.Rarities, show.Rarity)
	}
	for size := 0; from < to && size < message.PageBytes; from++ {
		one := show.Displayed(asked[from])
		size += proto.Size(one)
		out.Displays = append(out.Displays, one)
	}
	if from < len(asked) {
		out.NextOffset = uint32(from)
	}
	return out, nil
}

// displaysAsked returns which displays of a catalog are of some kinds, or of any if there are none, and are for
// whoever has these pools; nil: all.
func displaysAsked(c *catalog.Catalog, kinds []kujiv1.DisplayKind, pools []string) (all []int) {
	displays := catalog.DisplaysOf(c)
	all = make([]int, 0, displays.Len())
	for i := range displays.Len() {
		d := displays.At(i)
		if len(kinds) > 0 && !slices.Contains(kinds, kujiv1.DisplayKind(d.Kind)) {
			continue
		}
		if pools == nil || d.Kind == catalog.DisplayPool && slices.Contains(pools, d.ID) {
			all = append(all, i)
		}
	}
	return all
}

// shower returns what makes the displays that a request asks for: none without a language.
func shower(ctx context.Context, req interface{ GetLanguage() string }) (message.Shower, error) {
	if req.GetLanguage() == "" {
		return message.Shower{}, nil
	}
	v, err := realmOf(ctx).Catalogs().InForce(ctx)
	if err != nil {
		return message.Shower{}, err
	}
	return message.NewShower(v.Catalog, req.GetLanguage())
}

// namesIn returns the items that an answer names, if the request asks for them, and no others of
// the catalog.
func namesIn(ctx context.Context, req interface{ GetNames() bool }, show message.Shower, answer proto.Message) ([]*kujiv1.Item, error) {
	if !req.GetNames() {
		return nil, nil
	}
	named := map[string]bool{}
	message.ItemsNamed(answer.ProtoReflect(), named)
	items, err := realmOf(ctx).Catalogs().Items(ctx, slices.Collect(maps.Keys(named)))
	return message.Each(items, show.Item), err
}
