//go:build !unix

// SPDX-License-Identifier: Apache-2.0

package project

// nonBlock is nothing where no pipe stands among files.
const nonBlock = 0
