//go:build !unix

package journaltest

import "testing"

func testFrozenHolder(t *testing.T, _ Store) { t.Skip("processes cannot be frozen here") }
