package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/spf13/cobra"

	"gatebench/clients"
	"gatebench/clients/registry"
	"gatebench/gateway"
	"gatebench/internal/config"
	"gatebench/server"
)

func newGateway(w *world) *cobra.Command {
	var (
		file string
		prof profile
	)
	cmd := &cobra.Command{
		Use:   "gateway [-f FILE]",
		Short: "Serve the gateway in front of an upstream",
		Long: `Serves the gateway section of the file: whichever client it names calls the
upstream. Ready when /-/healthz answers 200; metrics at /-/metrics, what it is made of
at /-/about. SIGTERM drains, a second signal ends at once. SIGHUP has the file read
anew, and so has a change of it under "watch: true": new requests go to the client that
it names now, those on their way end with the old one. A file with a mistake is refused.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := w.load(file)
			if err != nil {
				return err
			}
			finish, err := prof.start(cmd.Context())
			if err != nil {
				return err
			}
			return errors.Join(runGateway(cmd.Context(), w, file, cfg.Gateway), finish())
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "configuration file (default: none, every value its default)")
	prof.flags(cmd)
	return cmd
}

// load reads the file, or the defaults without one, with the environment over it.
func (w *world) load(file string) (*config.Config, error) {
	if file == "" {
		return checked(config.Defaults(w.options()))
	}
	return checked(config.Load(file, w.options()))
}

func (w *world) options() config.Options {
	return config.Options{Clients: registry.Names(), Floor: registry.Floor().Name, Environ: w.environ}
}

// checked makes whatever is wrong with a configuration the exit code for it.
func checked(cfg *config.Config, err error) (*config.Config, error) {
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return cfg, nil
}

func runGateway(ctx context.Context, w *world, file string, cfg gateway.Config) error {
	log := slog.New(slog.NewTextHandler(w.stderr, nil))
	// net/http's Transport has no logger of its own and writes a line for every answer
	// that upstream sends unasked: a cost that the other clients do not have.
	stdlog.SetOutput(io.Discard)
	first, err := assemble(cfg, nil)
	if err != nil {
		return exit(exitCannotRun, "%w", err)
	}
	gw := gateway.NewSwitch(first)
	sc := first.ServerConfig()
	sc.Log = log
	srv, err := server.New(sc, gw)
	if err != nil {
		return errors.Join(exit(exitCannotRun, "%w", err), gw.Close())
	}
	all := &gatewayService{Server: srv, gateway: gw}
	ln, err := listen(ctx, "gateway", cfg.Listen)
	if err != nil {
		return errors.Join(err, all.Close())
	}
	if cfg.Admin.Listen != "" {
		// Its own refusals are not the gateway's requests: no Reject, which counts.
		own := cfg.ServerConfig()
		own.Log = log
		if err := all.serveAdmin(ctx, own, cfg.Admin.Listen, w.stdout); err != nil {
			return errors.Join(err, ln.Close(), all.Close())
		}
	}
	r := &reloader{w: w, file: file, log: log, to: gw, now: cfg}
	r.seen, _ = os.ReadFile(file)
	all.reload(ctx, r)
	return serve(ctx, w.stdout, ln, all, cfg.Timeouts.BodyIdle)
}

// assemble puts the layers together: the one place that knows both the registry
// and the gateway. before is the gateway that this one takes over from, nil for the
// first.
func assemble(cfg gateway.Config, before *gateway.Gateway) (*gateway.Gateway, error) {
	entry, ok := registry.Lookup(cfg.Client)
	if !ok {
		return nil, errors.New("there is no client " + cfg.Client)
	}
	dialer := &clients.Dialer{Timeout: cfg.Timeouts.Connect}
	client, err := entry.New(cfg.Settings(dialer))
	if err != nil {
		return nil, err
	}
	gw, err := gateway.New(cfg, gateway.Parts{
		Client:      client,
		Dialer:      dialer,
		Version:     version(),
		AboutClient: aboutClient(entry),
		AboutServer: aboutServer(cfg.Server),
		Succeeds:    before,
	})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return gw, nil
}

func aboutClient(e registry.Entry) gateway.Library {
	return gateway.Library{Name: e.Name, Module: cmp.Or(e.Module, e.Name), Version: moduleVersion(e.Module), Deviations: e.Deviations()}
}

func aboutServer(kind string) gateway.Library {
	module := server.Module(kind)
	return gateway.Library{Name: kind, Module: module, Version: moduleVersion(module), Deviations: server.Deviations(kind)}
}

// version is gatebench's own: the module version, or the commit it was built from,
// marked where the files were not those of the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	commit := settings["vcs.revision"]
	if commit == "" {
		return info.Main.Version
	}
	if settings["vcs.modified"] == "true" {
		return commit[:min(12, len(commit))] + "+dirty"
	}
	return commit[:min(12, len(commit))]
}

// moduleVersion is that of the module as built in; what is in the standard library
// has Go's.
func moduleVersion(module string) string {
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, d := range info.Deps {
			if d.Path == module {
				return d.Version
			}
		}
	}
	return runtime.Version()
}

// gatewayService is the main port with what has to end beside it.
type gatewayService struct {
	*server.Server
	gateway *gateway.Switch
	admin   *server.Server // nil without admin.listen
	served  chan error
	stop    context.CancelFunc // of the reloads, nil before them
	reloads sync.WaitGroup
}

// reload has r reload until ctx ends, which is before the gateway closes.
func (g *gatewayService) reload(ctx context.Context, r *reloader) {
	ctx, g.stop = context.WithCancel(ctx)
	hangUp, stop := onHangUp()
	g.reloads.Go(func() {
		defer stop()
		r.run(ctx, hangUp)
	})
}

func (g *gatewayService) serveAdmin(ctx context.Context, sc server.Config, addr string, stdout io.Writer) error {
	ln, err := listen(ctx, "gateway's own paths", addr)
	if err != nil {
		return err
	}
	if g.admin, err = server.New(sc, g.gateway.Admin()); err != nil {
		return errors.Join(exit(exitCannotRun, "%w", err), ln.Close())
	}
	announce(stdout, "admin listening on", ln)
	g.served = make(chan error, 1)
	go func() { g.served <- g.admin.Serve(ln) }()
	return nil
}

// Close ends what Shutdown left: the client, and the own paths, which stay that
// long so that draining can be watched.
func (g *gatewayService) Close() error {
	if g.stop != nil {
		g.stop()
		g.reloads.Wait()
	}
	err := errors.Join(g.Server.Close(), g.gateway.Close())
	if g.admin != nil {
		err = errors.Join(err, g.admin.Close(), <-g.served)
	}
	return err
}

var _ service = (*gatewayService)(nil)
