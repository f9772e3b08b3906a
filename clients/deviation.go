package clients

// A Deviation is something that a library, as client or as server, cannot do
// although the hop's policy asks for it. It is declared rather than hidden: the
// conformance suite checks that it is still true, so that an upgrade which cures
// it turns a test red, and the report prints it under "what you give up".
type Deviation struct {
	// Name is one of the conformance suite's case names.
	Name string
	// Reason says in one sentence why the library cannot.
	Reason string
}
