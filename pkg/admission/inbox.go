package admission

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/upload"
)

// inbox makes the request of an archive that was put into an inbox: a deploy, as slipway.json in it says.
func (a *admitting) inbox(ctx context.Context) (run.Request, error) {
	if a.command != runlog.CommandDeploy {
		return run.Request{}, refusal("an inbox is for deploys", "the run is a "+string(a.command), "")
	}
	arch, err := a.desk.open(ctx, upload.Ref(a.ref))
	if err != nil {
		return run.Request{}, err
	}
	if arch.reader.Digest() == "" {
		if err := arch.reader.Compute(ctx); err != nil {
			return run.Request{}, err
		}
		arch.computed = true
		if err := a.desk.keepIndex(ctx, a.runID, arch); err != nil {
			return run.Request{}, err
		}
	}
	asm, err := arch.assembly()
	if err != nil {
		return run.Request{}, err
	}
	o, err := arch.options()
	if err != nil {
		return run.Request{}, err
	}
	stacks, _, err := assembly.Select(asm, o.Stacks, assembly.SelectOptions{All: len(o.Stacks) == 0, Exclusively: o.Exclusively})
	if err != nil {
		return run.Request{}, err
	}
	sub := run.Submission{Command: runlog.CommandDeploy, Options: o.Options, Caller: a.caller(""), Parameters: o.Parameters}
	if err := readable(stacks, o.Parameters); err != nil {
		return run.Request{}, err
	}
	return a.deploy(ctx, arch, asm, stacks, sub, o.Region, o.Role)
}

// options reads slipway.json of an archive, if it has one.
func (a *archive) options() (Options, error) {
	var o Options
	if len(a.reader.Files(upload.OptionsFile)) == 0 {
		return o, nil
	}
	body, err := fs.ReadFile(a.reader.FS(), upload.OptionsFile)
	if err != nil {
		return o, a.reason(err)
	}
	if err := strictly(body, &o); err != nil {
		return o, refusal(upload.OptionsFile+" in the upload can't be read", err.Error(), "Correct it: docs/admission.md has its members.")
	}
	if o.Version != submissionVersion {
		return o, refusal(upload.OptionsFile+" in the upload can't be read", fmt.Sprintf("its version is %d, and this control plane reads version %d", o.Version, submissionVersion), "Set its version.")
	}
	return o, nil
}
