#!/bin/sh
# Has SAM, and cfn-lint in it, validate the synthesized template as samconfig.toml points to it. SAM comes from PyPI into
# an environment of its own: its pins are not those of the emulators. No account and no credentials.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
venv=$root/.cache/sam
pinned=$root/infra/requirements.txt

if [ ! -f "$root/infra/cdk.out/SlipwayControlPlane.template.json" ]; then
	make -C "$root" synth
fi
if ! cmp -s "$pinned" "$venv/requirements.txt"; then
	rm -rf "$venv"
	"${PYTHON:-python3}" -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check -r "$pinned"
	cp "$pinned" "$venv/requirements.txt"
fi
cd "$root"
SAM_CLI_TELEMETRY=0 "$venv/bin/sam" validate --region us-east-1
