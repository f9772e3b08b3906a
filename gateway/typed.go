package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"gatebench/clients"
	"gatebench/server"
)

// product is what a typed route answers with. It is written out here, as any caller
// of a service has a type of its own for what it gets.
type product struct {
	Name  string  `json:"name"`
	ID    string  `json:"id"`
	Price float64 `json:"price"`
}

// A route says which value a request is answered with in mode typed.
type route uint8

const (
	untyped route = iota
	oneProduct
	manyProducts
)

// typedRoute finds the request's route; untyped means that its answer is passed on
// as bytes. HEAD is answered with no content to decode.
func (h *hop) typedRoute(in *server.Inbound) route {
	if h.decoder == nil || in.Method != "GET" && in.Method != "POST" {
		return untyped
	}
	path, _, _ := strings.Cut(in.Target, "?")
	switch path {
	case "/product", "/postProduct", "/postProduct2":
		return oneProduct
	case "/products":
		return manyProducts
	}
	if id, ok := strings.CutPrefix(path, "/product/"); ok && id != "" && !strings.Contains(id, "/") {
		return oneProduct
	}
	return untyped
}

// typedMax bounds, in bytes, what is held in memory to be decoded.
const typedMax = 4 << 20

var (
	errTypedMax = fmt.Errorf("an answer that is to be decoded is larger than %d bytes", typedMax)
	errDecoding = errors.New("decoding did not return")
	errNull     = errors.New("there is null where a product should be")
)

// retype replaces the content of resp by what is left of it after it has been
// decoded and encoded again. The exchange stays the client's: its connection, its
// place and the breaker's outcome wait for the end of resp as ever. Where it fails
// resp has ended.
func (h *hop) retype(resp *clients.Response, t route) (err error) {
	err = errDecoding // unless decoding returns
	whole := false
	defer func() {
		if !whole { // refused, or a panic: what resp holds is lost to all others otherwise
			resp.End(err)
		}
	}()
	content, err := h.decode(&bounded{resp.Body, typedMax}, t)
	if err != nil {
		if k := clients.KindOf(err); k != 0 {
			// Attempts were counted when the head came.
			return &clients.Error{Kind: k, Err: err}
		}
		return &clients.Error{Kind: clients.Protocol, Err: err}
	}
	resp.Body = &retyped{bytes.NewReader(content), resp.Body}
	resp.ContentLength = int64(len(content))
	resp.Trailers = nil // of a message that ended here
	ofOld := [...]string{
		"Trailer", "Content-Type", "ETag", "Last-Modified", "Accept-Ranges",
		"Content-MD5", "Digest", "Content-Digest", "Repr-Digest",
	}
	for _, name := range ofOld {
		resp.Fields.Del(name)
	}
	resp.Fields.Add("Content-Type", "application/json")
	whole = true
	return nil
}

// decode returns the product or products in body, encoded again.
func (h *hop) decode(body io.Reader, t route) ([]byte, error) {
	if t == manyProducts {
		var ps []product
		if err := h.decoder.Decode(body, &ps); err != nil {
			return nil, err
		}
		if ps == nil {
			return nil, errNull
		}
		return json.Marshal(ps)
	}
	var p *product
	if err := h.decoder.Decode(body, &p); err != nil {
		return nil, err
	}
	if p == nil {
		return nil, errNull
	}
	return json.Marshal(p)
}

// bounded is a reader that fails, other than [io.LimitReader], when there is more.
type bounded struct {
	from io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		return 0, &clients.Error{Kind: clients.ResponseTooLarge, Err: errTypedMax}
	}
	return n, err
}

// retyped is read from memory and closed where it came from.
type retyped struct {
	*bytes.Reader
	io.Closer
}
