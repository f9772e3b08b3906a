package backend

import "bytes"

// padding makes the bodies that hold products as large as is asked for, by a field
// that every reader of products passes over. A body that is as large already stays
// as it is.
type padding struct {
	size int

	// The bodies that load runs ask for, made once.
	product, products []byte
}

func newPadding(size int) *padding {
	p := &padding{size: size}
	p.product, p.products = p.pad(productBody), p.pad(productsBody)
	return p
}

var (
	paddingStart = []byte(`,"padding":"`)
	paddingEnd   = []byte(`"`)
)

// pad puts the field behind the last one of a JSON object, or of the last object of
// a list.
func (p *padding) pad(body []byte) []byte {
	missing := p.size - len(body)
	at := bytes.LastIndexByte(body, '}')
	if missing <= 0 || at < 0 {
		return body
	}
	fill := max(0, missing-len(paddingStart)-len(paddingEnd))
	padded := make([]byte, 0, len(body)+len(paddingStart)+fill+len(paddingEnd))
	padded = append(padded, body[:at]...)
	padded = append(padded, paddingStart...)
	padded = append(padded, bytes.Repeat([]byte("x"), fill)...)
	padded = append(padded, paddingEnd...)
	return append(padded, body[at:]...)
}
