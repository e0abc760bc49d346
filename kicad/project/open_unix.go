//go:build unix

// SPDX-License-Identifier: Apache-2.0

package project

import "syscall"

// nonBlock keeps the opening of a pipe from waiting for somebody who writes.
const nonBlock = syscall.O_NONBLOCK
