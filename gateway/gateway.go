// Package gateway is the hop between downstream and upstream, written once for
// every server and client: what is stripped, what is added, which reason gives
// which status.
package gateway
