// Serve runs the bridge beside an emulator of AWS until it is told to end.
//
//	go run ./pkg/emulators/bridge/serve -listen 127.0.0.1:4567 -emulator http://127.0.0.1:4566
//
// The address at which it serves is written to -address once it does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/slipway-cdk/slipway/pkg/emulators/bridge"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "where to serve")
	emulator := flag.String("emulator", "", "the emulator's address: where the functions' calls go, and what is not for the bridge")
	address := flag.String("address", "", "the file that takes the address")
	serial := flag.Bool("serial", false, "send the functions' calls to the emulator one at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *listen, *emulator, *address, *serial); err != nil {
		fmt.Fprintln(os.Stderr, "bridge:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, listen, emulator, address string, serial bool) error {
	dir, err := os.MkdirTemp("", "slipway-bridge-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	gateway, err := bridge.NewGateway(emulator, serial)
	if err != nil {
		return err
	}
	b := bridge.New(bridge.Options{Dir: dir, Endpoint: gateway.Endpoint, Log: os.Stderr})
	gateway.Record(b)
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: bridge.NewFront(b, gateway, slog.New(slog.NewTextHandler(os.Stderr, nil)))} //nolint:gosec // it serves this machine's tests
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if address != "" {
		if err := os.WriteFile(address, []byte("http://"+l.Addr().String()), 0o600); err != nil {
			return err
		}
	}
	err = server.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, b.Close(), gateway.Close())
}
