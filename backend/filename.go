package backend

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName leaves room for a mark within the 255 bytes that file systems allow.
const maxName = 200

// storedName makes a name that is safe in any folder out of one that a stranger
// chose. It is never empty, hidden, a path or longer than maxName, prints in one
// line, and is the name itself where that is harmless.
//
// A path is dropped up to its last separator of either family: browsers of old
// sent C:\dir\name. Percent-encoding is not undone; %2F is three harmless
// characters in a name.
func storedName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(harmless, strings.ToValidUTF8(name, "_"))
	name = strings.Trim(name, ". ") // neither hidden, "..", nor one that Windows would change
	name = shorten(name)
	if name == "" {
		return "file"
	}
	return name
}

// harmless replaces what is not seen (NUL, newlines, marks that turn the reading
// direction) and what some system or shell gives a meaning.
func harmless(r rune) rune {
	if !unicode.IsPrint(r) || strings.ContainsRune(`<>:"|?*`, r) {
		return '_'
	}
	return r
}

// shorten cuts the stem rather than the extension, between two characters.
func shorten(name string) string {
	if len(name) <= maxName {
		return name
	}
	stem, ext := splitExtension(name)
	keep := maxName - len(ext)
	for !utf8.RuneStart(stem[keep]) {
		keep--
	}
	return strings.TrimRight(stem[:keep], ". ") + ext
}

// marked puts mark before the extension: "report.pdf" becomes "report-mark.pdf".
func marked(name, mark string) string {
	stem, ext := splitExtension(name)
	return stem + "-" + mark + ext
}

// splitExtension splits at the last dot; more than 16 bytes are no extension.
func splitExtension(name string) (stem, ext string) {
	if dot := strings.LastIndexByte(name, '.'); dot > 0 && len(name)-dot <= 16 {
		return name[:dot], name[dot:]
	}
	return name, ""
}
