package retryablehttp_test

import (
	"testing"

	"gatebench/clients/clienttest"
	"gatebench/clients/retryablehttp"
)

func TestClient(t *testing.T) {
	clienttest.Run(t, retryablehttp.New, retryablehttp.Deviations()...)
}
