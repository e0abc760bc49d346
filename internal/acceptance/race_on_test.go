//go:build race

// SPDX-License-Identifier: Apache-2.0

package acceptance

// racing says that the race detector is on: it makes each of the many hundred
// processes slow to start, and finds nothing in a process that it would not find
// in a tenth of them. make test kills at every boundary.
const racing = true
