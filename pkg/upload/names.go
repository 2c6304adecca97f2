package upload

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkName says what is wrong with the path of an entry, "" when it is one that means the same file everywhere.
func checkName(name string, limit int) string {
	dir := strings.TrimSuffix(name, "/")
	switch {
	case dir == "":
		return "has no name"
	case len(name) > limit:
		return "has a name that is too long"
	case !utf8.ValidString(name):
		return "has a name that is not UTF-8"
	case strings.ContainsRune(name, '\\'):
		return "has a backslash in its name"
	case strings.HasPrefix(name, "/"):
		return "has an absolute path"
	case len(name) > 1 && name[1] == ':' && (name[0]|0x20 >= 'a' && name[0]|0x20 <= 'z'):
		return "has an absolute path (of a drive)"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "has a control character in its name"
	case dir == ".." || strings.HasPrefix(dir, "../") || strings.HasSuffix(dir, "/..") || strings.Contains(dir, "/../"):
		return "leads out of the archive"
	case path.Clean(dir) != dir:
		return "has a path that can be written shorter"
	}
	return ""
}

// names keeps apart what some file systems would not: paths that differ in case only, and files that are directories
// of others.
type names struct {
	// files and dirs are by their folded form, and hold the paths as they are written.
	files, dirs map[string]string
}

func newNames() *names { return &names{files: map[string]string{}, dirs: map[string]string{}} }

// add says what is wrong with the path of one more file, "" when nothing is.
func (n *names) add(name string) string {
	key := fold(name)
	if other, ok := n.files[key]; ok {
		if other == name {
			return "is there twice"
		}
		return "differs from " + quoted(other) + " in case only"
	}
	if _, ok := n.dirs[key]; ok {
		return "is a file and a directory of others"
	}
	n.files[key] = name
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		key := fold(dir)
		if other, ok := n.dirs[key]; ok {
			if other != dir {
				return "is in a directory that differs from " + quoted(other) + " in case only"
			}
			break // the directories above it are known
		}
		if _, ok := n.files[key]; ok {
			return "is in what is a file, too"
		}
		n.dirs[key] = dir
	}
	return ""
}

// fold maps all spellings of a path in upper and lower case to one.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}

func quoted(s string) string {
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return `"` + s + `"`
}
