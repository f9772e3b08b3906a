package result

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func hostile() *Document {
	return &Document{
		Schema: Schema,
		Arms:   []Arm{{Name: "=1+1", Client: "net/http", Server: "net/http"}, {Name: "a,\"b\"\r\nc", Client: "resty", Server: "net/http"}},
		Trials: []Trial{
			{Arm: "=1+1", Block: 0, Phase: Duet, Valid: true, Requests: 10, Metrics: map[string]float64{"cpu_us_per_request": 12.5, "response_time_p50": math.NaN()}},
			{Arm: "a,\"b\"\r\nc", Block: 0, Phase: Solo, VoidReason: "-2, said the \"backend\"\r\nand died", Metrics: map[string]float64{"throughput": math.Inf(1)}},
		},
	}
}

func TestWriteReadsBackWithoutNaN(t *testing.T) {
	dir := t.TempDir()
	d := hostile()
	if err := d.Write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]float64{"cpu_us_per_request": 12.5}, got.Trials[0].Metrics); diff != "" {
		t.Error(diff)
	}
	if len(got.Trials[1].Metrics) != 0 {
		t.Errorf("an infinite figure was kept: %v", got.Trials[1].Metrics)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("temporary files stay: %v", entries)
	}
}

func TestTrialsSurviveACSVReader(t *testing.T) {
	d := hostile()
	d.Finite()
	var b strings.Builder
	if err := d.WriteTrials(&b); err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(strings.NewReader(b.String()))
	rows, err := r.ReadAll() // fails where a row has another number of columns
	if err != nil {
		t.Fatal(err)
	}
	col := map[string]int{}
	for i, name := range rows[0] {
		col[name] = i
	}
	if got := rows[1][col["arm"]]; got != "'=1+1" {
		t.Errorf("a formula stays one: %q", got)
	}
	if got := rows[1][col["cpu_us_per_request"]]; got != "12.5" {
		t.Errorf("cpu_us_per_request = %q", got)
	}
	if got := rows[2][col["arm"]]; got != "a,\"b\"\nc" { // encoding/csv reads CRLF as LF
		t.Errorf("arm = %q", got)
	}
	if got := rows[2][col["void_reason"]]; !strings.HasPrefix(got, "'-2, said the \"backend\"") {
		t.Errorf("void_reason = %q", got)
	}
	if got := rows[2][col["throughput"]]; got != "" {
		t.Errorf("what was not measured shows as %q", got)
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ content, want string }{
		"damaged":        {"{\"schema\":\n\"gatebench.result/1\",\n", "is damaged in line 3"},
		"another type":   {`{"schema":1}`, "is not a result"},
		"another schema": {`{"schema":"gatebench.result/9"}`, `has the schema "gatebench.result/9"`},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, DocumentFile), []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := Read(t.TempDir()); !os.IsNotExist(err) {
		t.Errorf("no result: %v", err)
	}
}

func TestWriteFileLeavesTheOldOneWhenItCannot(t *testing.T) {
	if err := WriteFile(filepath.Join(t.TempDir(), "no", "such", "folder"), nil); err == nil {
		t.Error("wrote into a folder that is not there")
	}
}
