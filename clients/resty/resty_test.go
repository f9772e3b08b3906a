package resty_test

import (
	"testing"

	"gatebench/clients/clienttest"
	"gatebench/clients/resty"
)

func TestClient(t *testing.T) {
	clienttest.Run(t, resty.New, resty.Deviations()...)
}
