package sut

import (
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"gatebench/loadtest/result"
)

// Machine describes the machine and this program. What the system does not tell
// is absent.
func Machine() result.Machine {
	m := result.Machine{
		OS:    runtime.GOOS,
		Arch:  runtime.GOARCH,
		Cores: runtime.NumCPU(),
		Go:    runtime.Version(),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		m.Version = info.Main.Version
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		m.FDLimit = int64(limit.Cur)
	}
	m.CPU, m.MemoryB = hardware()
	return m
}

// Usage is what the system knows of a process.
type Usage struct {
	PeakResident int64 // bytes
	Descriptors  int
	Threads      int
}
