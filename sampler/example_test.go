package sampler_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/kuji-dev/kuji/sampler"
)

func ExampleSampler_Draw() {
	odds, err := sampler.New([]uint64{700, 250, 49, 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	src := rand.NewChaCha8([32]byte([]byte("a seed of thirty-two bytes, once")))
	var drawn [4]int
	for range 1_000_000 {
		i, _ := odds.Draw(src)
		drawn[i]++
	}
	fmt.Println(drawn)
	// Output: [699377 250306 49319 998]
}

// A box of tickets: every ticket drawn is gone, and a draw may be taken back.
func ExampleSampler_Take() {
	box, err := sampler.New([]uint64{1, 2, 7}) // tickets of each kind
	if err != nil {
		fmt.Println(err)
		return
	}
	src := rand.NewPCG(1, 2)
	i, _ := box.Take(src)
	fmt.Println("kind", i, "and", box.Total(), "left")
	if err := box.Set(i, box.Weight(i)+1); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("put back:", box.Total())

	var drawn [3]int
	for box.Total() > 0 {
		i, _ := box.Take(src)
		drawn[i]++
	}
	fmt.Println(drawn)
	// Output:
	// kind 2 and 9 left
	// put back: 10
	// [1 2 7]
}

// An entry that runs out is set to zero and cannot be drawn again.
func ExampleSampler_Set() {
	pool, err := sampler.New([]uint64{1, 1, 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	stock := []int{2, 1, 3}
	src := rand.NewPCG(3, 4)
	for {
		i, ok := pool.Draw(src)
		if !ok {
			break
		}
		fmt.Print(i, " ")
		if stock[i]--; stock[i] == 0 {
			if err := pool.Set(i, 0); err != nil {
				fmt.Println(err)
				return
			}
		}
	}
	fmt.Println("sold out")
	// Output: 2 2 1 2 0 0 sold out
}
