package clients

import (
	"encoding/json"
	"errors"
	"io"
)

// DecodeJSON is how one decodes over net/http: a [json.Decoder] on the body, as it
// comes. What plain use of that leaves out is the look at what follows: without it
// a second value goes unseen, and so does an end that comes too early; and a body
// that was not read to its end costs its connection.
func DecodeJSON(body io.Reader, v any) error {
	d := json.NewDecoder(body)
	if err := d.Decode(v); err != nil {
		return err
	}
	switch _, err := d.Token(); {
	case err == io.EOF:
		return nil
	case KindOf(err) != 0:
		return err
	}
	return errors.New("something follows the JSON value")
}
