package sut_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatebench/loadtest/sut"
)

// childMark in the environment makes this test binary a child that does what its
// value says.
const childMark = "SUT_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childMark); role != "" {
		roles[role]()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// roles are what a child can be.
var roles = map[string]func(){
	"server":   func() { end := onTERM(); serve(); <-end },
	"stubborn": func() { signal.Ignore(syscall.SIGTERM); serve(); select {} },
	"late":     func() { end := onTERM(); time.Sleep(50 * time.Millisecond); serve(); <-end },
	"silent":   func() { <-onTERM() },
	"unready":  func() { end := onTERM(); serve(); <-end }, // asked at a path it does not have
	"early": func() {
		fmt.Fprintln(os.Stderr, "reading configuration")
		fmt.Fprintln(os.Stderr, "listen 127.0.0.1:80: permission denied")
		fmt.Fprintln(os.Stderr)
		os.Exit(3)
	},
	"burner": func() {
		end := onTERM()
		for used := time.Duration(0); used < burnt; {
			var u syscall.Rusage
			syscall.Getrusage(syscall.RUSAGE_SELF, &u)
			used = time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
		serve()
		<-end
	},
	"crash": func() { panic("out of cheese") },
	"chatty": func() {
		for i := range 200_000 {
			fmt.Fprintln(os.Stderr, "line", i)
		}
		os.Exit(1)
	},
	"facts": func() {
		pgid, _ := syscall.Getpgid(0)
		fmt.Println("gomaxprocs", runtime.GOMAXPROCS(0))
		fmt.Println("cpus", sut.CPUs())
		fmt.Println("own group", pgid == os.Getpid())
		fmt.Println("environment", strings.Join(os.Environ(), " "))
	},
	// parent starts a server of its own, says its pid and hangs.
	"parent": func() {
		l := sut.NewLauncher(io.Discard)
		p, err := l.Start(child("silent"))
		if err != nil {
			panic(err)
		}
		fmt.Println(p.PID())
		select {}
	},
}

// burnt is the CPU time that a burner uses before it is ready.
const burnt = 300 * time.Millisecond

// raceEnd lets a race-built child end at once: by default the detector makes it
// wait a second for reports.
const raceEnd = "GORACE=atexit_sleep_ms=0"

// child is the command for one role.
func child(role string, env ...string) sut.Command {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return sut.Command{Name: role, Path: exe, Env: append(env, childMark+"="+role, raceEnd)}
}

func serve() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	opened := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/stuck", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "}{") })
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# TYPE connections_total counter\nconnections_total %d\n", opened)
		fmt.Fprint(w, "# TYPE requests_total counter\nrequests_total{code=\"200\"} 40\nrequests_total{code=\"502\"} 2\n")
		fmt.Fprint(w, "# TYPE goroutines gauge\ngoroutines 7\n")
	})
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprintln(out, "warming up")
	fmt.Fprintf(out, "listening on %s\n", ln.Addr())
	fmt.Fprintf(out, "listening on %s\n", "somewhere else")
	out.Flush()
	srv := &http.Server{Handler: mux, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened++ // one at a time: the tests ask in turn
		}
	}}
	go srv.Serve(ln)
}

// onTERM is called before a child says that it listens: it may be asked to end at
// once.
func onTERM() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	return c
}
