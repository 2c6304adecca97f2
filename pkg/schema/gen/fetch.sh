#!/bin/sh
# Downloads the two published sources of the resource-type index into a directory:
#   pkg/schema/gen/fetch.sh DIR [SERVICE_SPEC_VERSION] [CFN_LINT_VERSION]
# Needs npm and pip. Nothing is installed or executed: both are only archives to read.
set -eu
dir=${1:?usage: fetch.sh DIR [SERVICE_SPEC_VERSION] [CFN_LINT_VERSION]}
spec=@aws-cdk/aws-service-spec@${2:-latest}
lint=cfn-lint${3:+==$3}
mkdir -p "$dir"
rm -f "$dir"/aws-cdk-aws-service-spec-*.tgz "$dir"/cfn_lint-*.whl
npm pack --silent --pack-destination "$dir" "$spec"
pip download --quiet --no-deps --only-binary :all: --dest "$dir" "$lint"
