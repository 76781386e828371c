package catalog

import "iter"

// nearest returns the candidate that word is probably a slip of, or "". A slip is a missing, an added or a
// wrong letter, or two letters swapped. One is allowed for each three letters, but at least one, at most two.
func nearest(word string, candidates iter.Seq[string]) string {
	allowed := max(1, min(2, len(word)/3))
	best, bestSlips := "", allowed+1
	if len(word) > MaxID+allowed {
		return ""
	}
	for c := range candidates {
		if d := len(c) - len(word); d > allowed || -d > allowed || len(c) <= allowed {
			continue
		}
		if s := slips(word, c); s < bestSlips {
			best, bestSlips = c, s
		}
	}
	return best
}

// slips is the optimal string alignment distance of a and b, in bytes.
func slips(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, row := rows[(i+2)%3], rows[i%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return rows[(len(a)+1)%3][len(b)]
}
