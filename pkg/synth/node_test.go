//go:build unix

package synth

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

// TestAJavaScriptAppIsRunWithNode needs Node.js, as CDK itself does.
func TestAJavaScriptAppIsRunWithNode(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("Node.js is not installed")
	}
	script := `
const fs = require('fs'), out = process.env.CDK_OUTDIR;
fs.mkdirSync(out, { recursive: true });
fs.writeFileSync(out + '/A.template.json', '{}');
fs.writeFileSync(out + '/manifest.json', JSON.stringify({ version: '55.0.0', artifacts: {
  A: { type: 'aws:cloudformation:stack', properties: { templateFile: 'A.template.json', stackName: process.argv[2] } } } }));
`
	for _, app := range []string{`my-app.js Named`, `"with space.js" Named`} {
		_, opts := project(t, "", map[string]string{"my-app.js": script, "with space.js": script})
		opts.App = app
		asm, err := Run(context.Background(), opts)
		if err != nil {
			t.Fatalf("%s: %v", app, err)
		}
		if asm.Stacks[0].Name != "Named" {
			t.Errorf("%s: the arguments were lost: stack %q", app, asm.Stacks[0].Name)
		}
	}
}

func TestWithNodeLeavesOtherCommandsAlone(t *testing.T) {
	for _, app := range []string{"go run .", "node app.js", "npx ts-node app.ts"} {
		if got, err := withNode(app); err != nil || got != app {
			t.Errorf("withNode(%q) = %q, %v", app, got, err)
		}
	}
	if _, err := exec.LookPath("node"); err == nil {
		if got, err := withNode("app.js x"); err != nil || !strings.HasSuffix(got, ` app.js x`) {
			t.Errorf("withNode: %q, %v", got, err)
		}
	}
}
