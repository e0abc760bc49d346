// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha1"
	"encoding/hex"
)

// id is the UUID of a thing by its name: version 5 of RFC 9562 under a name
// space of ours, so that every run gives the same file.
func id(name string) string {
	space := [16]byte{0x6c, 0x1f, 0x0e, 0x52, 0x3a, 0x8d, 0x4b, 0x67, 0x9e, 0x21, 0x5d, 0x70, 0xb4, 0xc3, 0x18, 0xfa}
	sum := sha1.Sum(append(space[:], name...))
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x50
	u[8] = u[8]&0x3f | 0x80
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func uuid(name string) node { return list("uuid", text(id(name))) }
