// Package experiment carries a plan out: arms × random complete blocks, a duet and
// solo trials in each, every trial with fresh processes, and gives the result
// document with every trial that was measured.
//
// It reaches gateways, backends and load generators as child processes and over
// HTTP only, as it would a stranger's. What the figures mean, which arm is better
// and how sure that is, is for the packages stats and report.
//
// The trap: CPU per request depends on the load, and the machine's speed on the
// hour. Figures are comparable within a block and nowhere else.
package experiment
