package backend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"gatebench/clients"
)

// Product is what the service is about.
type Product struct {
	Name  string  `json:"name"`
	ID    string  `json:"id"`
	Price float64 `json:"price"`
}

// shelf returns the three products of a type.
func shelf(kind string) []Product {
	return []Product{
		{Name: kind + "A", ID: "1", Price: 56.67},
		{Name: kind + "B", ID: "2", Price: 66.66},
		{Name: kind + "C", ID: "3", Price: 88.88},
	}
}

// defaultType is the type where the query names none. Its answers are encoded
// once: they are what load runs ask for.
const defaultType = "T"

var (
	jsonFields    = clients.Fields{{Name: "Content-Type", Value: "application/json"}}
	productFields = clients.Fields{
		{Name: "Content-Type", Value: "application/json"},
		{Name: "X-appId", Value: "android01"},
		{Name: "Set-Cookie", Value: "sid=1000101111"},
	}

	productBody  = encode(shelf(defaultType)[0])
	productsBody = encode(shelf(defaultType))
)

// maxBody bounds a body that is read into memory.
const maxBody = 4 << 20

// product answers the first product of a type.
func product(r request) (*clients.Response, error) {
	kind, err := productType(r)
	if err != nil {
		return nil, err
	}
	body := r.padding.product
	if kind != defaultType {
		body = r.padding.pad(encode(shelf(kind)[0]))
	}
	return clients.NewResponse(http.StatusOK, productFields, body), nil
}

// products answers all three of a type.
func products(r request) (*clients.Response, error) {
	kind, err := productType(r)
	if err != nil {
		return nil, err
	}
	body := r.padding.products
	if kind != defaultType {
		body = r.padding.pad(encode(shelf(kind)))
	}
	return clients.NewResponse(http.StatusOK, jsonFields, body), nil
}

func productType(r request) (string, error) {
	if err := discard(r.Body); err != nil {
		return "", err
	}
	if r.query == "" || r.query == "type="+defaultType {
		return defaultType, nil
	}
	values, err := parseQuery(r.query)
	if err != nil {
		return "", err
	}
	if !values.Has("type") {
		return defaultType, nil
	}
	return values.Get("type"), nil
}

// productByID echoes the product that path and query describe.
func productByID(r request) (*clients.Response, error) {
	if err := discard(r.Body); err != nil {
		return nil, err
	}
	values, err := parseQuery(r.query)
	if err != nil {
		return nil, err
	}
	return echo(r, r.arg, values)
}

// postProduct echoes the product of a form; what the form lacks may stand in the
// query.
func postProduct(r request) (*clients.Response, error) {
	values, err := parseQuery(r.query)
	if err != nil {
		return nil, err
	}
	form, err := readForm(r)
	if err != nil {
		return nil, err
	}
	for name, vs := range form {
		values[name] = vs
	}
	return echo(r, values.Get("id"), values)
}

// readForm reads an x-www-form-urlencoded body; any other is no form.
func readForm(r request) (url.Values, error) {
	kind, _, _ := mime.ParseMediaType(r.Fields.Get("Content-Type"))
	if kind != "application/x-www-form-urlencoded" {
		return nil, discard(r.Body)
	}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the form cannot be read: %v", err)
	}
	return form, nil
}

func echo(r request, id string, values url.Values) (*clients.Response, error) {
	price, err := parsePrice(values)
	if err != nil {
		return nil, err
	}
	p := Product{Name: values.Get("name"), ID: id, Price: price}
	return clients.NewResponse(http.StatusOK, jsonFields, r.padding.pad(encode(p))), nil
}

// parsePrice takes what JSON can carry: a finite decimal number. A negative one
// is well formed; whether it makes sense is not for an echo to say.
func parsePrice(values url.Values) (float64, error) {
	text := values.Get("price")
	if text == "" {
		return 0, refuse(http.StatusBadRequest, "the price is missing: send a number like price=56.67")
	}
	price, err := strconv.ParseFloat(text, 64)
	// ParseFloat also reads "inf", "0x1p-2" and "1_0".
	if err != nil || strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, refuse(http.StatusBadRequest, "the price %.40q is not a number: send one like price=56.67", text)
	}
	return price, nil
}

// postProductJSON echoes a product sent as JSON.
func postProductJSON(r request) (*clients.Response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	var p *Product
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, refuse(http.StatusBadRequest, "the body is not a product in JSON: %s", jsonFault(err))
	}
	if p == nil {
		return nil, refuse(http.StatusBadRequest, "the body is not a product in JSON: it is null")
	}
	return clients.NewResponse(http.StatusOK, jsonFields, r.padding.pad(encode(p))), nil
}

// bookTickets echoes a JSON list, whatever it lists, byte for byte.
func bookTickets(r request) (*clients.Response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, refuse(http.StatusBadRequest, "the body is not a list in JSON: %s", jsonFault(err))
	}
	if list == nil {
		return nil, refuse(http.StatusBadRequest, "the body is not a list in JSON: it is null")
	}
	return clients.NewResponse(http.StatusOK, jsonFields, body), nil
}

// jsonFault words err without the names of Go's types.
func jsonFault(err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field != "" {
			return fmt.Sprintf("%s is a %s, or out of range", e.Field, e.Value)
		}
		return "it is a JSON " + e.Value
	}
	return err.Error()
}

func parseQuery(query string) (url.Values, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the query cannot be read: %v", err)
	}
	return values, nil
}

// readBody reads the whole body, up to maxBody.
func readBody(r request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	if r.ContentLength > maxBody {
		return nil, errBodyTooLarge
	}
	var b bytes.Buffer
	if r.ContentLength > 0 {
		b.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, bodyError(err)
	case n > maxBody:
		return nil, errBodyTooLarge
	}
	return b.Bytes(), nil
}

// discard reads a body that nobody asked for, so that the connection can carry
// the next request. One beyond maxBody is left to the server, which closes.
func discard(body io.Reader) error {
	if body == nil {
		return nil
	}
	if _, err := io.CopyN(io.Discard, body, maxBody); err != nil && !errors.Is(err, io.EOF) {
		return bodyError(err)
	}
	return nil
}

var errBodyTooLarge = refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", maxBody)

// bodyError marks whatever a body's reader returns as the caller's fault, unless
// the server has said what it is.
func bodyError(err error) error {
	if clients.KindOf(err) != 0 {
		return err
	}
	return &clients.Error{Kind: clients.BadRequest, Err: errors.Join(errors.New("read body"), err)}
}
