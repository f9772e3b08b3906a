package nethttp_test

import (
	"testing"

	"gatebench/clients/clienttest"
	"gatebench/clients/nethttp"
)

func TestClient(t *testing.T) {
	clienttest.Run(t, nethttp.New, nethttp.Deviations()...)
}
