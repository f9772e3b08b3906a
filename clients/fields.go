package clients

import "strings"

// A Field is one field line of a message head or trailer section. Names compare
// without case and are kept in the case they came in where the library can.
type Field struct{ Name, Value string }

// Fields are field lines in their order; a name may stand several times. A slice
// rather than a map: it is filtered and extended in place in one pass, it keeps
// order and case, and neither family of libraries pays for the other's header
// type.
type Fields []Field

// Get returns the value of the first field of that name, "" if there is none.
func (fs Fields) Get(name string) string {
	v, _ := fs.Lookup(name)
	return v
}

// Lookup is Get that tells an empty value from an absent field.
func (fs Fields) Lookup(name string) (value string, ok bool) {
	for i := range fs {
		if EqualName(fs[i].Name, name) {
			return fs[i].Value, true
		}
	}
	return "", false
}

// Has reports whether a field of that name is there.
func (fs Fields) Has(name string) bool {
	_, ok := fs.Lookup(name)
	return ok
}

// Add appends a field line.
func (fs *Fields) Add(name, value string) {
	*fs = append(*fs, Field{Name: name, Value: value})
}

// Set replaces all fields of that name by one.
func (fs *Fields) Set(name, value string) {
	fs.Del(name)
	fs.Add(name, value)
}

// Del removes all fields of that name, in place.
func (fs *Fields) Del(name string) {
	kept := (*fs)[:0]
	for _, f := range *fs {
		if !EqualName(f.Name, name) {
			kept = append(kept, f)
		}
	}
	clear((*fs)[len(kept):])
	*fs = kept
}

// EqualName compares two field names as HTTP does: without ASCII case (RFC 9110,
// section 5.1). The length check first makes the usual miss cheap.
func EqualName(a, b string) bool {
	return len(a) == len(b) && strings.EqualFold(a, b)
}

// Own clones whatever strings of r are views of a library's buffer, all in one
// allocation, so that r may outlive the exchange.
func (r *Request) Own() {
	if !r.Borrowed {
		return
	}
	var o owner
	o.grow(len(r.Method)+len(r.Target)+len(r.Host), r.Fields)
	o.take(&r.Method)
	o.take(&r.Target)
	o.take(&r.Host)
	o.takeFields(r.Fields)
	r.Borrowed = false
}

// Own clones the strings of r.Fields if they are views of a library's buffer, in
// one allocation.
func (r *Response) Own() {
	if !r.Borrowed {
		return
	}
	var o owner
	o.grow(0, r.Fields)
	o.takeFields(r.Fields)
	r.Borrowed = false
}

// owner copies many short strings into one allocation.
type owner struct{ b strings.Builder }

// grow makes room for size bytes and fs.
func (o *owner) grow(size int, fs Fields) {
	for i := range fs {
		size += len(fs[i].Name) + len(fs[i].Value)
	}
	o.b.Grow(size)
}

func (o *owner) take(s *string) {
	start := o.b.Len()
	o.b.WriteString(*s)
	*s = o.b.String()[start:]
}

func (o *owner) takeFields(fs Fields) {
	for i := range fs {
		o.take(&fs[i].Name)
		o.take(&fs[i].Value)
	}
}
