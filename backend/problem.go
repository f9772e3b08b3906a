package backend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"gatebench/clients"
)

// A refusal is an error that the caller is told of.
type refusal struct {
	status int
	detail string
}

func (r refusal) Error() string { return r.detail }

func refuse(status int, format string, args ...any) error {
	return refusal{status: status, detail: fmt.Sprintf(format, args...)}
}

// refusalOf words err for the caller. What goes wrong while a body is read comes
// from the server as an [*clients.Error].
func refusalOf(err error) refusal {
	if r, ok := errors.AsType[refusal](err); ok {
		return r
	}
	switch clients.KindOf(err) {
	case clients.RequestTooLarge:
		return refusal{http.StatusRequestEntityTooLarge, "the body is too large"}
	case clients.TimeoutBody:
		return refusal{http.StatusRequestTimeout, "the body did not arrive in time"}
	case clients.BadRequest:
		return refusal{http.StatusBadRequest, "the body cannot be read"}
	}
	return refusal{http.StatusInternalServerError, "something went wrong here; the log says what"}
}

// problem is a refusal as RFC 9457 writes it; no type means about:blank.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// response gives r as problem+json, with more fields behind.
func (r refusal) response(more ...clients.Field) *clients.Response {
	fields := append(clients.Fields{{Name: "Content-Type", Value: "application/problem+json"}}, more...)
	p := problem{Title: http.StatusText(r.status), Status: r.status, Detail: r.detail}
	return clients.NewResponse(r.status, fields, encode(p))
}

// encode is json.Marshal that leaves <, > and & as they came: this is no HTML,
// and an echo should look like what was sent.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // strings and finite numbers only
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
