// Package sut starts, watches, samples and stops the processes of a system under
// test: gateways, backends, load generators. It knows them as a stranger would:
// by command line, standard streams, /proc and HTTP.
//
// It leaves to others what is started in which order and what a sample means.
//
// The trap: a child that must not outlive us gets a parent-death signal, and
// Linux sends that when the thread that forked ends, not the process. So every
// child of a [Launcher] is started on one thread that lives as long as it.
package sut
