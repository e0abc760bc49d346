//go:build !race

package acceptance

// racing says that the race detector is on.
const racing = false
