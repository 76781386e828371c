package economy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
)

func TestNameIndex(t *testing.T) {
	var none nameIndex
	if _, ok := none.find("a"); ok {
		t.Error("an index of nothing has something")
	}
	for _, n := range []int{0, 1, 2, 3, 64, 1000} {
		id := func(i int) string { return strings.Repeat("x", i%70) + fmt.Sprint(i) }
		var ids []string
		var nums []uint32
		for i := range n {
			ids, nums = append(ids, id(i)), append(nums, uint32(i))
		}
		x := newNameIndex(ids, nums)
		for i := range 2 * n {
			if num, ok := x.find(id(i)); ok != (i < n) || ok && num != uint32(i) {
				t.Fatalf("%d of %d: %d, %v", i, n, num, ok)
			}
		}
		for from := 0; from < n; from += MaxStacks {
			var items []catalog.Stack
			for i := from; i < min(from+MaxStacks, n); i++ {
				items = append(items, catalog.Stack{Item: id(i)})
			}
			got := make([]uint32, MaxStacks)
			if !x.findAll(items, got) || !slices.Equal(got[:len(items)], nums[from:from+len(items)]) {
				t.Fatalf("%d of %d: all from %d: %v", len(items), n, from, got)
			}
			for i := range items {
				items[i].Item += "?"
				if x.findAll(items, got) {
					t.Fatalf("%q is found", items[i].Item)
				}
				items[i].Item = items[i].Item[:len(items[i].Item)-1]
			}
		}
		if _, ok := x.find(""); ok {
			t.Error("an empty id is found")
		}
	}
}

// TestNameHash: ids that differ in one byte anywhere have hashes apart.
func TestNameHash(t *testing.T) {
	seen := map[uint64]string{}
	for n := range 40 {
		for i := range n {
			for _, c := range "abc" {
				id := strings.Repeat("-", i) + string(c) + strings.Repeat("-", n-1-i)
				if had, ok := seen[nameHash(id)]; ok {
					t.Errorf("%q and %q have the same hash", id, had)
				}
				seen[nameHash(id)] = id
			}
		}
	}
}

func TestItemTwiceIsMalformed(t *testing.T) {
	var items []catalog.Stack
	for i := range MaxStacks {
		items = append(items, catalog.Stack{Item: fmt.Sprint("item", i), Quantity: 1})
	}
	cmd := Command{Kind: KindGrant, Player: "ann", Items: items}
	if err := cmd.Check(); err != nil {
		t.Fatal(err)
	}
	for i := range items {
		for j := range i {
			was := items[i].Item
			items[i].Item = items[j].Item
			if err := cmd.Check(); err == nil || err.Field != fmt.Sprintf("items[%d].item", i) || !strings.Contains(err.Message, fmt.Sprintf("items[%d] already", j)) {
				t.Fatalf("items %d and %d are the same: %v", i, j, err)
			}
			items[i].Item = was
		}
	}
}
