// SPDX-License-Identifier: Apache-2.0

// Package address looks over the addresses and keys that adapters are given.
package address

import (
	"errors"
	"fmt"
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

// NoKey says what a program must do about a missing key. Adapters read nothing of the
// environment, so a variable that is set is of no use until the program passes it on.
// Option is the option that takes the key, env the variable that vendors' documents
// name it by, empty where there is none; given says that the option was used, and thus
// got an empty key.
func NoKey(host, option, env string, given bool) string {
	pass := fmt.Sprintf("pass %s(os.Getenv(%q))", option, env)
	if env == "" {
		pass = fmt.Sprintf("pass the key of that server to %s", option)
	}
	if !given {
		return fmt.Sprintf("no API key for %s: %s; this package reads no environment variable itself", host, pass)
	}
	if env == "" {
		env = "the variable that it was read from"
	}
	return fmt.Sprintf("no API key for %s: %s was given an empty one; is %s set?", host, option, env)
}
