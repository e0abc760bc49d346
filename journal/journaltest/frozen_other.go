//go:build !unix

// SPDX-License-Identifier: Apache-2.0

package journaltest

import "testing"

func testFrozenHolder(t *testing.T, _ Store) { t.Skip("processes cannot be frozen here") }
