package result

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The names of what an experiment writes into its folder.
const (
	DocumentFile = "result.json"
	TrialsFile   = "trials.csv"
)

// Write saves d as DocumentFile in dir, whole or not at all.
func (d *Document) Write(dir string) error {
	d.Finite()
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	return WriteFile(filepath.Join(dir, DocumentFile), append(b, '\n'))
}

// WriteFile replaces the file at path by one with that content, whole or not at
// all: a reader, or a crash, never finds half of it.
func WriteFile(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(content); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil { // a report is there to be read
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Read reads DocumentFile in dir.
func Read(dir string) (*Document, error) {
	path := filepath.Join(dir, DocumentFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d Document
	if err := json.Unmarshal(b, &d); err != nil {
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			line := 1 + bytes.Count(b[:min(int(s.Offset), len(b))], []byte("\n"))
			return nil, fmt.Errorf("%s is damaged in line %d: %w", path, line, err)
		}
		return nil, fmt.Errorf("%s is not a result: %w", path, err)
	}
	if d.Schema != Schema {
		return nil, fmt.Errorf("%s has the schema %q, and %q is what this version reads", path, d.Schema, Schema)
	}
	return &d, nil
}

// Finite drops every figure that JSON cannot carry, so that none is ever written:
// a metric that is NaN or infinite was not measured.
func (d *Document) Finite() {
	for i := range d.Trials {
		for name, v := range d.Trials[i].Metrics {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				delete(d.Trials[i].Metrics, name)
			}
		}
	}
}

// WriteTrials writes one row per trial as CSV (RFC 4180): the same columns in
// every row, dots in numbers, empty where nothing was measured. A text that a
// spreadsheet would take for a formula gets an apostrophe in front.
func (d *Document) WriteTrials(w io.Writer) error {
	head := []string{"block", "phase", "profile", "position", "arm", "client", "server", "valid", "void_reason", "requests", "errors"}
	for _, m := range Metrics {
		head = append(head, m.Name)
	}
	out := csv.NewWriter(w)
	_ = out.Write(head)
	arms := map[string]Arm{}
	for _, a := range d.Arms {
		arms[a.Name] = a
	}
	for _, t := range d.Trials {
		row := []string{
			strconv.Itoa(t.Block), string(t.Phase), CSVText(t.Profile), strconv.Itoa(t.Position),
			CSVText(t.Arm), CSVText(arms[t.Arm].Client), CSVText(arms[t.Arm].Server),
			strconv.FormatBool(t.Valid), CSVText(t.VoidReason),
			strconv.FormatInt(t.Requests, 10), strconv.FormatInt(t.Errors, 10),
		}
		for _, m := range Metrics {
			figure := ""
			if v, ok := t.Metrics[m.Name]; ok {
				figure = strconv.FormatFloat(v, 'f', -1, 64)
			}
			row = append(row, figure)
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// CSVText neutralises what spreadsheets take for a formula (OWASP, "CSV Injection").
func CSVText(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
