package experiment

import (
	"encoding/json"
	"strings"
	"time"

	"gatebench/loadtest/load"
	"gatebench/loadtest/sut"
)

// Live is a load on its way: what it tells of itself, and what the gateway used so far.
type Live struct {
	Arm string
	load.Progress
	// GatewayCPU is the time that the gateway has used since it started; 0 where
	// the system does not tell.
	GatewayCPU time.Duration
}

// ProgressPrefix begins a line in which a load generator tells its progress as JSON.
const ProgressPrefix = "progress "

// watchLoad takes the lines in which an arm's load tells its progress, if anybody wants
// to know. The gateway is not asked: that would cost it time.
func (r *run) watchLoad(arm string, gateway *sut.Server) func(line string) bool {
	if r.options.Live == nil {
		return nil
	}
	return func(line string) bool {
		told, ok := strings.CutPrefix(line, ProgressPrefix)
		live := Live{Arm: arm}
		if !ok || json.Unmarshal([]byte(told), &live.Progress) != nil {
			return false
		}
		if cpu, err := gateway.CPU(); err == nil {
			live.GatewayCPU = cpu
		}
		r.options.Live(live)
		return true
	}
}
