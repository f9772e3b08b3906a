// Package e2e holds the tests of the whole: real commands, real sockets, the
// configuration as a user writes it. It has no code of its own.
package e2e
