package cli

import (
	"strings"
	"testing"

	"gatebench/internal/doctor"
)

func TestPrescribe(t *testing.T) {
	var out strings.Builder
	w := &world{stdout: &out}
	if err := prescribe(w, []doctor.Finding{{Name: "cores", Value: "2"}}); err != nil {
		t.Errorf("all is well: %v", err)
	}
	err := prescribe(w, []doctor.Finding{
		{Name: "cores", Value: "2"},
		{Name: "other processes", Value: "\x1b[31mred\t(7)", Warn: true, Cure: "end it"},
	})
	if e, ok := err.(*exitError); !ok || e.code != exitCannotRun || !strings.Contains(err.Error(), "1 of 2") { //nolint:errorlint // prescribe's own
		t.Errorf("a warning: %v", err)
	}
	want := "ok  cores  2\nok    cores            2\nwarn  other processes  ?[31mred?(7)\n                       → end it\n"
	if out.String() != want {
		t.Errorf("wrote\n%s, want\n%s", out.String(), want)
	}
}

func TestDoctorLooksAtThisMachine(t *testing.T) {
	code, stdout, stderr := gatebench(t, "doctor")
	warned := strings.Contains("\n"+stdout, "\nwarn ")
	if warned && code != exitCannotRun || !warned && code != exitOK {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	for _, name := range []string{"cores", "steal", "open files limit", "clock source", "127.0.0.1:8080", "127.0.0.1:8081"} {
		if !strings.Contains(stdout, name) {
			t.Errorf("no word of %s:\n%s", name, stdout)
		}
	}
	if code, _, stderr := gatebench(t, "doctor", "-f", "no-such-file.yaml"); code != exitUsage || !strings.Contains(stderr, "no such file") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
