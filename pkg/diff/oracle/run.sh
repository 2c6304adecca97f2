#!/bin/sh
# Compares the verdicts of pkg/diff with those of two oracles: see main.go and docs/replacement.md.
#   sh pkg/diff/oracle/run.sh [CORPUS]
# Needs go, node, npm, python3 and pip. The oracles are installed below .cache/oracle, once, at fixed versions.
set -eu
cd "$(dirname "$0")/../../.."
corpus=${1:-../shared/corpus}
lint=1.58.0
cache=$PWD/.cache/oracle
mkdir -p "$cache"
if ! cmp -s pkg/diff/oracle/package.json "$cache/package.json" || [ ! -d "$cache/node_modules" ]; then
	cp pkg/diff/oracle/package.json "$cache/package.json"
	npm install --prefix "$cache" --silent --no-audit --no-fund --no-package-lock --ignore-scripts
fi
wheel=$cache/cfn_lint-$lint-py3-none-any.whl
[ -f "$wheel" ] || pip download --quiet --no-deps --only-binary :all: --dest "$cache" "cfn-lint==$lint"
[ -d "$corpus" ] || { echo "no corpus at $corpus: comparing the generated assemblies and one resource of every type" >&2; corpus=; }
go build -o "$cache/oracle" ./pkg/diff/oracle
"$cache/oracle" pairs -corpus "$corpus" >"$cache/pairs.jsonl"
node pkg/diff/oracle/cfndiff.mjs "$cache" <"$cache/pairs.jsonl" >"$cache/cfndiff.jsonl"
python3 pkg/diff/oracle/registry.py "$wheel" <"$cache/pairs.jsonl" >"$cache/registry.jsonl"
"$cache/oracle" report -docs docs/replacement.md "$cache/pairs.jsonl" "$cache/cfndiff.jsonl" "$cache/registry.jsonl"
