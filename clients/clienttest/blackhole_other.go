//go:build !linux

package clienttest

func (c *check) blackhole() string {
	c.skip("how to make connections hang is known for Linux only")
	return ""
}
