#!/bin/sh
# Validates the shipped definitions with the Amazon States Language validator of npm, whose version is $1.
# Function and machine placeholders stand where an ARN will be, which the validator accepts as they are.
set -eu
cd "$(dirname "$0")"
exec npx --yes "asl-validator@$1" --json-path run.asl.json --json-path settle.asl.json --json-path ../infra/died.asl.json
