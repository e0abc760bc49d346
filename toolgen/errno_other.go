//go:build !unix && !windows

// SPDX-License-Identifier: Apache-2.0

package toolgen

func errorNumber(error) uint64 { return 0 }
