package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"gatebench/clients/registry"
	"gatebench/gateway"
	"gatebench/server"
)

func newClients(w *world) *cobra.Command {
	return &cobra.Command{
		Use:   "clients",
		Short: "List the clients and servers, their versions and what each cannot do",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, e := range registry.All() {
				describeLibrary(w.stdout, "client", aboutClient(e))
			}
			for _, kind := range server.Kinds() {
				describeLibrary(w.stdout, "server", aboutServer(kind))
			}
			return nil
		},
	}
}

func describeLibrary(w io.Writer, role string, l gateway.Library) {
	fmt.Fprintf(w, "%s %s (%s %s)\n", role, l.Name, l.Module, l.Version)
	for _, d := range l.Deviations {
		fmt.Fprintf(w, "  cannot: %s: %s\n", d.Name, d.Reason)
	}
}
