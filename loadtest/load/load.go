// Package load is the load engine: it sends requests to a URL on a schedule fixed
// beforehand, and records when each was due, sent and done. It knows no gateway:
// whatever speaks HTTP/1.1 can be its target.
package load
