package fasthttp

import (
	"testing"

	"gatebench/clients/clienttest"
)

func TestClient(t *testing.T) { clienttest.Run(t, New, Deviations()...) }
