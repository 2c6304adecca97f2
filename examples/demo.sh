#!/bin/sh
# The demo: deploy the guestbook app to the simulated AWS, deploy it again, change it, look, destroy it.
# $1 is the slipway binary, $2 a directory with the built app that the demo may fill.
set -eu
slipway=$1
work=$2
root=$(cd "$(dirname "$0")/.." && pwd)

export SLIPWAY_LOCAL=1 SLIPWAY_LOCAL_DIR="$work/slipway"
rm -rf "$work/slipway" "$work/cdk.out"
cd "$root/examples/guestbook"
app="--app $work/guestbook --output $work/cdk.out"

step() { printf '\n\033[1m== %s\033[0m\n' "$1" | if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then cat; else sed 's/\x1b\[[0-9;]*m//g'; fi; }

step "Deploy two stacks: slipway deploy --all --yes"
"$slipway" deploy --all --yes $app
step "Deploy again: nothing to do"
"$slipway" deploy --all --yes $app
step "Change the message, the queue's timeout and name, add a dead-letter queue: slipway diff --all"
changes='-c message=Hello -c visibility=90 -c archive=true -c queue=guestbook-entries'
"$slipway" diff --all $app $changes
step "Deploy the change: one queue is replaced, what uses it follows"
"$slipway" deploy --all --yes --force-stateful-recreation $app $changes
step "What happened to GuestbookWeb: slipway events"
"$slipway" events GuestbookWeb | tail -n 15
step "What is there now: slipway sandbox list"
"$slipway" sandbox list
step "Destroy everything: slipway destroy --all --yes"
"$slipway" destroy --all --yes $app $changes
"$slipway" sandbox list
