// SPDX-License-Identifier: Apache-2.0

package address_test

import (
	"testing"

	"github.com/fiducial-dev/fiducial/provider/internal/address"
)

func TestParse(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.example.com/v1/": "https://api.example.com/v1",
		"http://[::1]:8080":           "http://[::1]:8080",
		"api.example.com/v1":          "",
		"ftp://api.example.com":       "",
		"http://":                     "",
		"https://me:word@example.com": "",
		"http://exa mple.com":         "",
	} {
		u, err := address.Parse(base)
		if want == "" && err == nil || want != "" && (err != nil || u.String() != want) {
			t.Errorf("%s: got %v, %v", base, u, err)
		}
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "a.localhost": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true,
		"localhost.example.com": false, "10.0.0.1": false, "example.com": false, "": false,
	} {
		if got := address.Loopback(host); got != want {
			t.Errorf("%s: %t", host, got)
		}
	}
}

func TestFitsHeader(t *testing.T) {
	for value, want := range map[string]bool{"": true, "k-1 2~": true, "a\nb": false, "ключ": false, "a\x7f": false} {
		if got := address.FitsHeader(value); got != want {
			t.Errorf("%q: %t", value, got)
		}
	}
}
