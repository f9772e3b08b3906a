package backend

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"gatebench/backend/fault"
	"gatebench/clients"
	"gatebench/internal/conf"
	"gatebench/internal/strictyaml"
)

// control is how faults are switched: GET says which are in force, PUT replaces
// them all, DELETE ends them.
var control = []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete}

// orders is what the path takes and gives, as YAML or as JSON, which is YAML too.
type orders struct {
	Faults []fault.Fault `yaml:"faults"`
}

// longestOrders bounds the body of a PUT.
const longestOrders = 64 << 10

// control is for this machine alone: who can switch faults on can stop the service.
func (s *service) control(r request) (*clients.Response, error) {
	if r.arg != "faults" && r.arg != "latency" {
		return elsewhere.answer(r)
	}
	if ip := net.ParseIP(r.RemoteIP); ip == nil || !ip.IsLoopback() {
		return nil, refuse(http.StatusForbidden, "this is switched from this machine alone, and you are at %s", r.RemoteIP)
	}
	if r.arg == "latency" {
		return s.redeal(r)
	}
	switch r.Method {
	case http.MethodPut:
		fs, err := readOrders(r.Body)
		if err != nil {
			return nil, err
		}
		s.faults.Put(fs)
	case http.MethodDelete:
		s.faults.Put(nil)
	}
	fs := s.faults.Faults()
	var omit []string
	for i, f := range fs {
		for _, key := range f.Absent() {
			omit = append(omit, fmt.Sprintf("faults[%d].%s", i, key))
		}
	}
	body, err := strictyaml.JSON(orders{fs}, omit...)
	if err != nil {
		return nil, err
	}
	return clients.NewResponse(http.StatusOK, clients.Fields{{Name: "Content-Type", Value: "application/json"}}, append(body, '\n')), nil
}

// redeal has latencies dealt anew from the start of a stream: who gives the same number
// before each of several loads has their requests, by their order here, take the same
// times.
func (s *service) redeal(r request) (*clients.Response, error) {
	if r.Method != http.MethodPut {
		return nil, refuse(http.StatusMethodNotAllowed, "latencies are dealt anew by PUT /-/latency?stream=NUMBER")
	}
	q, err := url.ParseQuery(r.query)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	stream, err := strconv.ParseUint(q.Get("stream"), 10, 64)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%.100q is no number of a stream: write ?stream=7", q.Get("stream"))
	}
	s.latency.Restart(stream)
	return clients.NewResponse(http.StatusOK, nil, nil), nil
}

// readOrders reads strictly; what is wrong is told with its line and column.
func readOrders(body io.Reader) ([]fault.Fault, error) {
	if body == nil {
		return nil, refuse(http.StatusBadRequest, `there are no faults: send {"faults": [{"status": 503}]}, or DELETE to end them`)
	}
	src, err := io.ReadAll(io.LimitReader(body, longestOrders+1))
	if err != nil {
		return nil, err
	}
	if len(src) > longestOrders {
		return nil, refuse(http.StatusRequestEntityTooLarge, "faults are told in at most %d bytes", longestOrders)
	}
	d, err := strictyaml.Parse("faults", src)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	var o orders
	vs, err := d.Decode(&o, strictyaml.Environment{})
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	var c conf.Check
	for i := range o.Faults {
		at := fmt.Sprintf("faults[%d]", i)
		if !vs.Set(at + ".share") {
			o.Faults[i].Share = 1
		}
		c.Within(at, o.Faults[i].Validate())
	}
	if err := vs.Locate("", c.Err()); err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	return o.Faults, nil
}
