// Command gatebench compares outbound HTTP clients inside a gateway. See
// `gatebench help`.
package main

import (
	"os"

	"gatebench/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdout, os.Stderr)) }
