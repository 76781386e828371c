package bench_test

import (
	"flag"
	"testing"
)

// TestBenchmarks runs every benchmark once with a small input. It measures nothing but shows what
// is broken.
func TestBenchmarks(t *testing.T) {
	was := flag.Lookup("test.benchtime").Value.String()
	if err := flag.Set("test.benchtime", "20x"); err != nil {
		t.Fatal(err)
	}
	small = true
	defer func() {
		small = false
		if err := flag.Set("test.benchtime", was); err != nil {
			t.Error(err)
		}
	}()
	for name, body := range map[string]func(*testing.B){
		"DrawHot": BenchmarkDrawHot, "DrawWide": BenchmarkDrawWide, "DrawWindow": BenchmarkDrawWindow, "DrawParallel": BenchmarkDrawParallel, "Draw": BenchmarkDraw,
		"DoAll": BenchmarkDoAll, "DoDurable": BenchmarkDoDurable, "Grant": BenchmarkGrant, "Atomic": BenchmarkAtomic,
		"Recovery": BenchmarkRecovery, "Sweep": BenchmarkSweep, "Collect": BenchmarkCollect, "Gamble": BenchmarkGamble,
		"Catalogs": BenchmarkCatalogs, "CatalogApply": BenchmarkCatalogApply, "Counters": BenchmarkCounters, "EventBytes": BenchmarkEventBytes,
	} {
		t.Run(name, func(t *testing.T) {
			failed := true
			testing.Benchmark(func(b *testing.B) {
				defer func() { failed = b.Failed() }()
				body(b)
			})
			if failed {
				t.Errorf("go test -run '^$' -bench '^Benchmark%s$' -benchtime 20x ./bench tells why", name)
			}
		})
	}
}
