package config

import "slices"

// Closest is the candidate that text most likely means, or "": at most a third
// of its letters may differ.
func Closest(text string, candidates []string) string {
	best, least := "", max(1, len(text)/3)+1
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if d := distance(text, c); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete, replace or swap with
// their neighbour to make b of a.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
