package clienttest

import "slices"

func cases() []testCase {
	return slices.Concat(
		headCases(), framingCases(), beyondCases(), bodyCases(), faultCases(),
		timeoutCases(), poolCases(), retryCases(), lifeCases(),
	)
}

func rule(name, text string, run func(*check)) testCase {
	return testCase{Rule: Rule{Name: name, Text: text}, run: run}
}
