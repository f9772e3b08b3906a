// Package strictyaml decodes one YAML document onto structs that already hold
// their defaults, and forgives nothing: an unknown or repeated key, a value of
// the wrong type, a number without its unit, an anchor, a second document. Every
// fault is told by file, line and column, with the line itself, the path of the
// key and a cure, and all of them at once.
//
// It knows no section of the file: keys come from the structs' `yaml:"..."` tags
// (a field without one is no key), values that are more than text, number or
// bool from [encoding.TextUnmarshaler], durations from [conf.ParseDuration].
// After decoding it still knows where each value came from, so that what a
// section's own check complains about is pointed at too ([Values.Locate]).
//
// It leaves to others: which environment there is, what a value means.
//
// The trap: a list replaces the default list, it is not appended; a mapping is
// merged key by key.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxBytes bounds a file: a configuration is written by hand, and what is
	// longer is a wrong file.
	maxBytes = 1 << 20
	// maxDepth bounds nesting, since the parser recurses.
	maxDepth = 64
)

// A Document is one YAML file that parsed, not decoded yet.
type Document struct {
	name  string
	lines []string
	root  ast.Node // nil if the file holds nothing
}

// ReadFile reads and parses the file at path.
func ReadFile(path string) (*Document, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, plainly(path, err)
	}
	defer func() { _ = f.Close() }() // only read from
	src, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, plainly(path, err)
	}
	return Parse(path, src)
}

// plainly says in one sentence what the operating system said in its own.
func plainly(path string, err error) error {
	message := "cannot be read: " + err.Error()
	var pe *os.PathError
	switch {
	case errors.Is(err, os.ErrNotExist):
		message = "there is no such file"
	case errors.Is(err, os.ErrPermission):
		message = "cannot be read: permission denied"
	case errors.Is(err, syscall.EISDIR):
		message = "is a directory, not a file"
	case errors.As(err, &pe):
		message = "cannot be read: " + pe.Err.Error()
	}
	return &Error{File: path, Message: message, cause: err}
}

// Parse parses src, which is called name in errors. A file that holds nothing is
// a document in which everything has its default.
func Parse(name string, src []byte) (*Document, error) {
	text, err := decodeText(name, src)
	if err != nil {
		return nil, err
	}
	d := &Document{name: name, lines: strings.Split(text, "\n")}
	for i, l := range d.lines {
		if strings.Trim(l, " \t") == "" {
			d.lines[i] = "" // a lone tab is nothing to a reader and a fault to the parser
		}
	}
	text = strings.Join(d.lines, "\n")
	tokens := lexer.Tokenize(text)
	if at := tooDeep(tokens); at != nil {
		return nil, d.fault(at.Position, "", fmt.Sprintf("is nested more than %d levels deep", maxDepth), "")
	}
	file, err := parse(tokens)
	if err != nil {
		return nil, d.syntax(err)
	}
	if at := d.tabbed(tokens); at != nil {
		return nil, d.fault(at, "", tabMessage, "")
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if d.root != nil {
			at := doc.Body.GetToken()
			if doc.Start != nil {
				at = doc.Start
			}
			return nil, d.fault(at.Position, "", "a second document begins here; a file holds one", "")
		}
		d.root = doc.Body
	}
	return d, nil
}

// parse is the parser, with its panics on garbage (it has some) as errors.
func parse(tokens token.Tokens) (f *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot be understood as YAML: %v", p)
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // repeats are found in decoding, with all else
}

// decodeText returns src as text with \n line ends and without a byte-order
// mark, both of which editors on Windows leave.
func decodeText(name string, src []byte) (string, error) {
	fail := func(format string, args ...any) (string, error) {
		return "", &Error{File: name, Message: fmt.Sprintf(format, args...)}
	}
	if len(src) > maxBytes {
		return fail("is larger than 1 MiB, too large for a configuration")
	}
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(src, []byte(mark)) {
			return fail("is UTF-16 text; save it as UTF-8")
		}
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(src), "\ufeff"), "\r\n", "\n")
	line := 1
	for i, r := range text {
		switch {
		case r == '\n':
			line++
		case r == 0:
			return fail("line %d holds a zero byte: this is no UTF-8 text (UTF-16, or a binary file)", line)
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			return fail("line %d holds a byte that is not UTF-8; save the file as UTF-8", line)
		case r < ' ' && r != '\t', r == 0x7f, r == '\ufeff':
			return fail("line %d holds the control character %U; remove it", line, r)
		}
	}
	return text, nil
}

// tooDeep returns the first token that nests more than maxDepth levels.
func tooDeep(tokens token.Tokens) *token.Token {
	var (
		flow    int
		columns []int // of the open block levels
	)
	for _, tk := range tokens {
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow = max(0, flow-1)
		case token.SequenceEntryType, token.MappingKeyType:
			c := tk.Position.Column
			for len(columns) > 0 && columns[len(columns)-1] >= c {
				columns = columns[:len(columns)-1]
			}
			columns = append(columns, c)
		}
		// Block mappings nest by indentation, a column at least per level;
		// the scanner counts those.
		if flow > maxDepth || len(columns) > maxDepth || tk.Position.IndentLevel > maxDepth {
			return tk
		}
	}
	return nil
}

// syntax turns the parser's error into one of ours.
func (d *Document) syntax(err error) error {
	var se *yaml.SyntaxError
	if !errors.As(err, &se) || se.Token == nil || se.Token.Position == nil {
		return &Error{File: d.name, Message: err.Error()}
	}
	at := se.Token.Position
	// The parser meets a tab as a character, a neighbour, or an odd value; the
	// writer sees none of these.
	for n := max(1, at.Line-1); n <= min(at.Line+1, len(d.lines)); n++ {
		if tab := d.tabInIndent(n); tab != nil {
			return d.fault(tab, "", tabMessage, "")
		}
	}
	return d.fault(at, "", "is not YAML: "+se.Message, "")
}

const tabMessage = "the line is indented with a tab; YAML takes spaces only"

// tabbed finds a tab among spaces in front of a line, which the parser counts as
// nothing. Within brackets and text of many lines indentation means nothing.
func (d *Document) tabbed(tokens token.Tokens) *token.Position {
	var flow, line int
	for i, tk := range tokens {
		ofText := i > 0 && (tokens[i-1].Type == token.LiteralType || tokens[i-1].Type == token.FoldedType)
		if first := tk.Position.Line > line; first && flow == 0 && !ofText {
			if tab := d.tabInIndent(tk.Position.Line); tab != nil {
				return tab
			}
		}
		line = tk.Position.Line
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		}
	}
	return nil
}

// tabInIndent returns the first tab in front of line n's text.
func (d *Document) tabInIndent(n int) *token.Position {
	if n < 1 || n > len(d.lines) {
		return nil
	}
	l := d.lines[n-1]
	indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
	if tab := strings.IndexByte(indent, '\t'); tab >= 0 && len(indent) < len(l) {
		return &token.Position{Line: n, Column: tab + 1}
	}
	return nil
}

// fault is a problem at a position of this document.
func (d *Document) fault(at *token.Position, path, message, hint string) *Error {
	e := &Error{File: d.name, Path: path, Message: message, Hint: hint}
	if at != nil && at.Line >= 1 && at.Line <= len(d.lines) {
		e.Line, e.Column, e.source = at.Line, max(1, at.Column), d.lines[at.Line-1]
	}
	return e
}
