package experiment

import (
	"os"
	"path/filepath"
	"testing"

	"gatebench/loadtest/result"
)

func TestAnEarlierResultIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "quick")
	for _, want := range []string{"", dir + ".1", dir + ".2"} {
		kept, err := SetAside(dir + "/")
		if err != nil || kept != want {
			t.Fatalf("kept in %q, %v, want %q", kept, err, want)
		}
		if err := PrepareOut(dir); err != nil {
			t.Fatal(err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("the new folder holds %v, %v", entries, err)
		}
		if err := os.WriteFile(filepath.Join(dir, result.DocumentFile), []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir+".2", result.DocumentFile)); err != nil || string(got) != dir+".1" {
		t.Errorf("the second result is %q, %v", got, err)
	}
}

func TestAFolderWithoutAResultStaysWhereItIs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if kept, err := SetAside(dir); kept != "" || err != nil {
		t.Errorf("kept in %q, %v", kept, err)
	}
}
