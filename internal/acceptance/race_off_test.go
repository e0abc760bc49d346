//go:build !race

// SPDX-License-Identifier: Apache-2.0

package acceptance

// racing says that the race detector is on.
const racing = false
