package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/cli/views"
)

// release is the version that `make build` links in; "" in a binary that was built without it.
var release string

// version describes the binary, from what the build and the Go toolchain have recorded in it.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readVersion() version {
	v := version{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	if release != "" {
		v.Version = release
	}
	return v
}

func newVersion(env *environment) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  slipway version
  slipway version --json`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			if asJSON {
				return views.WriteJSON(env.streams.Out, v)
			}
			env.streams.Text("slipway %s (%s, %s)", v.Version, v.Go, v.Platform)
			return nil
		},
	}
	jsonFlag(cmd, &asJSON, "print the version as one JSON document")
	return cmd
}
