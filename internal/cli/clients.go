package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"gatebench/clients/registry"
	"gatebench/gateway"
	"gatebench/server"
)

func newClients(w *world) *cobra.Command {
	return &cobra.Command{
		Use:   "clients",
		Short: "Show what each client and server can and cannot do, and why",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, r := range roles() {
				r.describe(w.stdout)
				for _, l := range r.libraries {
					fmt.Fprintf(w.stdout, "%s %s is %s %s\n", r.name, l.Name, l.Module, l.Version)
				}
				fmt.Fprintln(w.stdout)
			}
			fmt.Fprint(w.stdout, paragraph("", "", "Beside them there is client: "+registry.Floor().Name+", which answers from memory and calls nobody. "+
				"It is not under test and is not in the table: an arm with it shows what a gateway costs by itself."))
			return nil
		},
	}
}

// A role is what libraries are compared in.
type role struct {
	name, intro string
	libraries   []gateway.Library
}

func roles() []role {
	asClient := role{name: "client", intro: "Clients: what a gateway with each can pass on."}
	for _, e := range registry.All() {
		asClient.libraries = append(asClient.libraries, aboutClient(e))
	}
	asServer := role{name: "server", intro: "Servers: what callers of a gateway with each can rely on."}
	for _, kind := range server.Kinds() {
		asServer.libraries = append(asServer.libraries, aboutServer(kind))
	}
	return []role{asClient, asServer}
}

// describe writes the matrix of a role and the reason of each "no". What is not in
// it, all of them can: a point is one because somebody deviates.
func (r role) describe(w io.Writer) {
	fmt.Fprintln(w, r.intro)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := "\npoint"
	for _, l := range r.libraries {
		line += "\t" + l.Name
	}
	fmt.Fprintln(t, line)
	for _, point := range r.points() {
		line := point
		for _, l := range r.libraries {
			line += "\t" + can(l, point)
		}
		fmt.Fprintln(t, line)
	}
	_ = t.Flush()
	for _, l := range r.libraries {
		for i, d := range l.Deviations {
			if i == 0 {
				fmt.Fprintf(w, "\nWhy not, with %s as %s:\n", l.Name, r.name)
			}
			fmt.Fprint(w, paragraph("  ", "    ", d.Name+": "+d.Reason))
		}
	}
	fmt.Fprintln(w)
}

// points are the rules from which any of the libraries deviates, in their order.
func (r role) points() (names []string) {
	for _, l := range r.libraries {
		for _, d := range l.Deviations {
			if !slices.Contains(names, d.Name) {
				names = append(names, d.Name)
			}
		}
	}
	return names
}

func can(l gateway.Library, point string) string {
	for _, d := range l.Deviations {
		if d.Name == point {
			return "no"
		}
	}
	return "yes"
}

// paragraph breaks text into lines that fit a terminal of 80 columns.
func paragraph(first, rest, text string) string {
	const width = 80
	var b strings.Builder
	line := first
	for i, word := range strings.Fields(text) {
		if i > 0 && len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = rest + word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	return b.String() + line + "\n"
}
