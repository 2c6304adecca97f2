// Command guestbook is a small CDK app of two stacks, an example for Slipway. GuestbookData keeps what must
// outlive a deploy; GuestbookWeb serves it and refers to the data through an export.
package main

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(&awscdk.AppProps{Context: &map[string]any{
		// Refer to the data through exports that protect it, and say so: without this CDK warns.
		"@aws-cdk/core:defaultCrossStackReferences": "strong",
	}})
	cfg, err := configure(app)
	if err != nil {
		fmt.Fprintln(os.Stderr, "guestbook:", err)
		os.Exit(1)
	}
	dir, err := unpackHandler()
	if err != nil {
		fmt.Fprintln(os.Stderr, "guestbook: unpacking the function's code:", err)
		os.Exit(1)
	}
	defer os.RemoveAll(dir)
	cfg.handler = dir
	data := newDataStack(app, "GuestbookData")
	newWebStack(app, "GuestbookWeb", data, cfg)
	awscdk.Tags_Of(app).Add(jsii.String("app"), jsii.String("guestbook"), nil)
	app.Synth(nil)
}

// config is what differs from deploy to deploy. Each setting comes from the context (-c message=…), then from
// the environment (GUESTBOOK_MESSAGE), then from here.
type config struct {
	// message greets the visitor; changing it updates the function in place.
	message string
	// visibility is the queue's visibility timeout in seconds; changing it updates the queue in place.
	visibility int
	// route is the path of the guestbook; changing it puts new routes in place of the old ones.
	route string
	// archive adds a dead-letter queue: a resource that comes and goes.
	archive bool
	// queue names the queue; changing it replaces the queue and what reads from it. Empty: a generated name.
	queue string
	// handler is the directory with the function's code.
	handler string
}

func configure(app constructs.Construct) (config, error) {
	cfg := config{
		message: setting(app, "message", "Welcome!"),
		route:   setting(app, "route", "/entries"),
		archive: setting(app, "archive", "false") == "true",
		queue:   setting(app, "queue", ""),
	}
	var err error
	cfg.visibility, err = strconv.Atoi(setting(app, "visibility", "60"))
	if err != nil || cfg.visibility < 30 || cfg.visibility > 43200 {
		return cfg, fmt.Errorf("visibility must be a number of seconds from 30 to 43200")
	}
	return cfg, nil
}

func setting(app constructs.Construct, name, fallback string) string {
	if v, ok := app.Node().TryGetContext(jsii.String(name)).(string); ok && v != "" {
		return v
	}
	if v := os.Getenv("GUESTBOOK_" + strings.ToUpper(name)); v != "" {
		return v
	}
	return fallback
}

//go:embed handler
var handler embed.FS

// unpackHandler writes the function's code into a directory, from which CDK copies it into the assembly. It is part of
// the binary, so the app runs from any directory.
func unpackHandler() (dir string, err error) {
	code, err := fs.Sub(handler, "handler")
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp("", "guestbook"); err != nil {
		return "", err
	}
	return dir, os.CopyFS(dir, code)
}
