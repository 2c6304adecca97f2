package sandbox

import (
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// matches reports whether a pattern of a schema accepts s. Patterns that Go can't read accept everything: they
// are ECMAScript, with lookaheads that RE2 lacks.
func matches(pattern, s string) bool {
	re, err := regexp.Compile(pattern)
	return err != nil || re.MatchString(s)
}

// example builds a string that a pattern accepts, with its length between least and most runes as far as the
// pattern's repetitions allow. It reports false when it finds none: an unreadable pattern, or one that is only
// satisfied by luck.
func example(pattern string, least, most int, rng *rand.Rand) (string, bool) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	tree = tree.Simplify()
	// The effort grows with every try: short repetitions first, then longer ones.
	for effort := 1; effort < 40; effort++ {
		var b strings.Builder
		generate(tree, effort, rng, &b)
		s := b.String()
		n := utf8.RuneCountInString(s)
		if n >= least && n <= most && matches(pattern, s) {
			return s, true
		}
	}
	return "", false
}

// generate writes one string of a regular expression's language, anchors aside.
func generate(re *syntax.Regexp, effort int, rng *rand.Rand, b *strings.Builder) {
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(pick(re.Rune, rng))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte(lowerDigits[rng.IntN(26)])
	case syntax.OpCapture:
		generate(re.Sub[0], effort, rng, b)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			generate(sub, effort, rng, b)
		}
	case syntax.OpAlternate:
		generate(re.Sub[rng.IntN(len(re.Sub))], effort, rng, b)
	case syntax.OpQuest:
		if effort > 3 && rng.IntN(2) == 0 {
			generate(re.Sub[0], effort, rng, b)
		}
	case syntax.OpStar:
		repeat(re.Sub[0], effort-1, effort, rng, b)
	case syntax.OpPlus:
		repeat(re.Sub[0], effort, effort, rng, b)
	case syntax.OpRepeat:
		n := max(re.Min, effort)
		if re.Max >= 0 {
			n = min(n, re.Max)
		}
		repeat(re.Sub[0], n, effort, rng, b)
	}
}

func repeat(re *syntax.Regexp, n, effort int, rng *rand.Rand, b *strings.Builder) {
	for range n {
		generate(re, effort, rng, b)
	}
}

// pick chooses a rune of a class, a plain letter or digit where the class has one.
func pick(ranges []rune, rng *rand.Rand) rune {
	var plain []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		for _, r := range lowerDigits {
			if r >= ranges[i] && r <= ranges[i+1] {
				plain = append(plain, r)
			}
		}
	}
	if len(plain) > 0 {
		return plain[rng.IntN(len(plain))]
	}
	if len(ranges) < 2 {
		return 'a'
	}
	i := rng.IntN(len(ranges)/2) * 2
	return ranges[i] + rune(rng.IntN(int(min(ranges[i+1]-ranges[i], 25))+1))
}
