package template

import (
	"strings"

	"github.com/agext/levenshtein"
)

// didYouMean names the candidate that a misspelt name most probably stands for, as a sentence, or "".
func didYouMean(name string, candidates []string) string {
	if best := Closest(name, candidates); best != "" {
		return "did you mean " + best + "?"
	}
	return ""
}

// Closest returns the candidate nearest to the name, or "" when none is near enough to be meant.
func Closest(name string, candidates []string) string {
	best, bestDistance := "", (len(name)+1)/3+1
	for _, c := range candidates {
		if strings.EqualFold(c, name) {
			return c
		}
		if d := levenshtein.Distance(name, c, nil); d < bestDistance || (d == bestDistance && best != "" && c < best) {
			best, bestDistance = c, d
		}
	}
	return best
}
