#!/bin/sh
# Runs every fuzz target of the template language, one after the other: test/fuzz.sh [time per target, 60s].
# A failing input is written below testdata/fuzz of its package, where the ordinary tests find it again.
set -eu
cd "$(dirname "$0")/.."
time=${1:-60s}

fuzz() {
	echo "fuzzing $2 of $1 for $time"
	go test -run '^$' -fuzz "^$2\$" -fuzztime "$time" "./$1"
}

fuzz pkg/template FuzzParse
fuzz pkg/template FuzzParseSub
fuzz pkg/intrinsic FuzzExpand
fuzz pkg/intrinsic FuzzResolve
fuzz pkg/intrinsic FuzzDynamicReferences
fuzz pkg/asl FuzzPath
