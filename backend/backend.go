// Package backend is the product service behind the gateway.
package backend
