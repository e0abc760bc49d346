// SPDX-License-Identifier: Apache-2.0

// Package address looks over the addresses and keys that adapters are given.
package address

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// Parse reads the base URL of a server, without a slash at its end (E-211).
func Parse(base string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the base URL must be an http or https address")
	}
	if u.User != nil {
		return nil, errors.New("the base URL must not hold a password; give a key instead")
	}
	return u, nil
}

// Loopback reports whether a host is this machine, whose servers are never asked
// for a key (B-131).
func Loopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// FitsHeader reports whether a key or a name may stand in a header (E-215).
func FitsHeader(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}
