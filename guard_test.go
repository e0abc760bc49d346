// SPDX-License-Identifier: Apache-2.0

package fiducial

import "testing"

func TestSameArgs(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":2}`, `{ "b": 2, "a": 1 }`, true},
		{`{"a":"\u0041"}`, `{"a":"\u0041" }`, true},
		{`{"a":"\u0041"}`, `{"a":"A"}`, true},
		{`{"a":"x y"}`, `{"a":"xy"}`, false},
		{`{"a":12}`, `{"a":21}`, false},
		{`{"a":1}`, `{"a":2}`, false},
		{``, ` {} `, true},
		{``, `{"a":1}`, false},
		{`not json`, `not  json`, false},
	} {
		if got := sameArgs(c.a, c.b); got != c.same {
			t.Errorf("%s and %s: %t", c.a, c.b, got)
		}
	}
}
