package strictyaml

import (
	"github.com/goccy/go-yaml/ast"
)

// An Overlay is a mapping that is kept as it stands, to be decoded later over one
// or more structs whose defaults are not known yet.
type Overlay struct {
	doc  *Document
	path string
	node ast.Node // nil: no keys
}

// Decode stores the mapping in the struct that into points to, which holds the
// defaults. Positions and paths are those of the file.
func (o Overlay) Decode(into any) (*Values, error) {
	vs := o.doc.values(into, o.path)
	if o.node == nil {
		return vs, nil
	}
	dec := decoder{vs: vs}
	dec.value(o.path, o.node, vs.root)
	return vs, join(dec.faults)
}
