#!/bin/sh
# Runs the suites that need AWS against its emulators, one after the other, in a Python environment of their
# own. No Docker, no account, no network once the environment stands.
#
#   pkg/emulators/run.sh [emulator …]      default: ministack moto
#
#   PYTHON       the Python to make the environment with (3.10 or newer), default python3
#   PACKAGES     the packages to test, default all that have suites for emulators
#   GO_TEST_ARGS more arguments for go test, for example -v or -race
#
# What each emulator cannot do is probed by the suites and printed as a table at the end.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=$here/.venv
packages=${PACKAGES:-"./pkg/objectstore/s3/... ./pkg/lookup/cloud ./pkg/upload ./pkg/runlog/objects ./examples/guestbook ./pkg/bootstrap ./pkg/runlog/dynamo/... ./pkg/controlplane/... ./pkg/provider/conformance ./pkg/provider/custom ./pkg/provider/oracle ./pkg/macro ./pkg/emulators/leastprivilege ./pkg/emulators/endtoend"}
[ $# -gt 0 ] || set -- ministack moto

# The environment is made again when the pinned versions change.
if ! cmp -s "$here/requirements.txt" "$venv/requirements.txt"; then
	rm -rf "$venv"
	"${PYTHON:-python3}" -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
	cp "$here/requirements.txt" "$venv/requirements.txt"
fi

work=$(mktemp -d)
pid=
bridge=
stop() {
	for p in $pid $bridge; do
		kill "$p" 2>/dev/null || true
		wait "$p" 2>/dev/null || true
	done
	pid=
	bridge=
}
trap 'stop; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

free_port() {
	"$venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# start NAME PORT BRIDGE-PORT: the emulator and its bridge in the background, their processes in $pid and $bridge.
# Waits and pauses of MiniStack's Step Functions take a tenth of their time.
start() {
	"$work/bridge" -listen "127.0.0.1:$3" -emulator "http://127.0.0.1:$2" ${serial:+-serial} >"$work/$1-bridge.log" 2>&1 &
	bridge=$!
	case $1 in
	ministack)
		GATEWAY_PORT=$2 BIND_HOST=127.0.0.1 LOG_LEVEL=WARNING TMPDIR=$work SFN_WAIT_SCALE=0.1 SLIPWAY_BRIDGE=http://127.0.0.1:$3 \
			"$venv/bin/python" "$here/bridge/launch_ministack.py" >"$work/$1.log" 2>&1 &
		;;
	moto)
		# Its Step Functions call Lambda where they believe moto to be: at the bridge, which passes on the rest.
		# IAM has the policies that AWS manages only when it is told so.
		MOTO_PORT=$3 MOTO_IAM_LOAD_MANAGED_POLICIES=true "$venv/bin/python" "$here/bridge/launch_moto.py" -H 127.0.0.1 -p "$2" >"$work/$1.log" 2>&1 &
		;;
	*)
		echo "there is no emulator $1: ministack, moto" >&2
		exit 2
		;;
	esac
	pid=$!
}

# ready PORT: waits until the emulator answers, a minute at most.
ready() {
	"$venv/bin/python" - "$1" "$pid" <<'PY'
import http.client, os, sys, time

port, pid = int(sys.argv[1]), int(sys.argv[2])
end = time.monotonic() + 60
while time.monotonic() < end:
    try:
        os.kill(pid, 0)
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        c.request("GET", "/")
        c.getresponse()
        sys.exit(0)
    except ProcessLookupError:
        sys.exit("it has ended")
    except OSError:
        time.sleep(0.1)
sys.exit("it does not answer")
PY
}

(cd "$root" && go build -o "$work/bridge" ./pkg/emulators/bridge/serve)

# What the end-to-end suite deploys: the control plane's own assembly, with functions for this machine, and an example; and
# the command line that does it.
case $packages in
*endtoend*)
	(
		cd "$root"
		names=
		for f in functions/*/; do
			name=$(basename "$f")
			[ "$name" = pack ] || names="$names $name"
		done
		# shellcheck disable=SC2086 # a list of words
		go run ./functions/pack -arch "$(go env GOARCH)" -out "$work/dist" $names
		go build -o "$work/guestbook" ./examples/guestbook
		go build -ldflags "-X main.release=emulated" -o "$work/infra" ./infra
		go build -ldflags "-X main.release=emulated" -o "$work/slipway" ./cli
		cd infra
		CDK_OUTDIR=$work/plane CDK_CONTEXT_JSON="{\"dist\":\"$work/dist\"}" "$work/infra"
	)
	;;
esac

failed=
for name in "$@"; do
	port=$(free_port)
	bridge_port=$(free_port)
	echo "== $name"
	# moto serves every request in a thread of its own and has no lock around its conditions: of two concurrent
	# writers under one condition both may win, and a cancelled transaction restores a table that others have
	# changed (moto/dynamodb/models: transact_write_items).
	serial=
	if [ "$name" = moto ]; then
		serial=1
		printf '%s\tAWS: concurrent requests are isolated\tno: they are sent one at a time\t-\n' "$name" >>"$work/report"
	fi
	start "$name" "$port" "$bridge_port"
	if ready "$port" && (
		cd "$root"
		# shellcheck disable=SC2086 # lists of words
		SLIPWAY_TEST_ENDPOINT=http://127.0.0.1:$port SLIPWAY_TEST_EMULATOR=$name SLIPWAY_TEST_REPORT=$work/report \
			SLIPWAY_TEST_SERIAL=$serial SLIPWAY_TEST_BRIDGE=http://127.0.0.1:$bridge_port \
			SLIPWAY_TEST_PLANE=$work/plane SLIPWAY_TEST_GUESTBOOK=$work/guestbook SLIPWAY_TEST_COSTS=$work/costs \
			SLIPWAY_TEST_PROGRAM=$work/slipway SLIPWAY_TEST_CALLS=$work/calls AWS_EC2_METADATA_DISABLED=true go test -count=1 -timeout 60m -tags emulators ${GO_TEST_ARGS:-} $packages
	); then
		stop
	else
		stop
		failed="$failed $name"
		mkdir -p "$here/logs"
		cp "$work/$name.log" "$work/$name-bridge.log" "$here/logs/"
		echo "the logs of $name and its bridge are in pkg/emulators/logs" >&2
	fi
done

if [ -s "$work/report" ]; then
	echo
	"$venv/bin/python" - "$work/report" <<'PY'
import sys

rows = sorted({tuple(line.rstrip("\n").split("\t")) for line in open(sys.argv[1], encoding="utf-8")}, key=lambda r: (r[1], r[0]))
rows.insert(0, ("emulator", "what AWS does", "can it?", "cases left out"))
widths = [max(len(r[i]) for r in rows) for i in range(3)]
for r in rows:
    print("  ".join(c.ljust(w) for c, w in zip(r, widths)) + "  " + r[3])
PY
fi

if [ -s "$work/costs" ]; then
	printf '\nwhat a deploy uses:\n'
	cat "$work/costs"
	echo
fi

if [ -s "$work/calls/calls.jsonl" ]; then
	mkdir -p "$here/logs"
	cp "$work/calls/calls.jsonl" "$work/calls/unused" "$here/logs/"
	printf '\nwhat the functions have called is in pkg/emulators/logs/calls.jsonl; what they may do and have not done:\n'
	cat "$work/calls/unused"
fi

if [ -n "$failed" ]; then
	echo "failed on:$failed" >&2
	exit 1
fi
