package sut

import (
	"fmt"

	"github.com/prometheus/procfs"
)

// Usage reads what the process uses; it fails once the process has ended.
func (p *Process) Usage() (Usage, error) {
	u, err := usage(p.PID())
	if err != nil {
		return Usage{}, fmt.Errorf("usage of %s: %w", p.name, err)
	}
	return u, nil
}

func usage(pid int) (Usage, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, err
	}
	status, err := proc.NewStatus()
	if err != nil {
		return Usage{}, err
	}
	descriptors, err := proc.FileDescriptorsLen()
	if err != nil {
		return Usage{}, err
	}
	stat, err := proc.Stat()
	if err != nil {
		return Usage{}, err
	}
	return Usage{PeakResident: int64(status.VmHWM), Descriptors: descriptors, Threads: stat.NumThreads}, nil
}

// hardware is the model of the processor and the memory in bytes.
func hardware() (cpu string, memory int64) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return "", 0
	}
	if infos, err := fs.CPUInfo(); err == nil && len(infos) > 0 {
		cpu = infos[0].ModelName
	}
	if info, err := fs.Meminfo(); err == nil && info.MemTotalBytes != nil {
		memory = int64(*info.MemTotalBytes)
	}
	return cpu, memory
}
