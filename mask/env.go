// SPDX-License-Identifier: Apache-2.0

package mask

import "strings"

// FromEnv picks the values that an environment ("NAME=value" lines, as os.Environ
// gives them) holds under a name that means a secret: one that holds TOKEN, SECRET,
// PASSWORD, PASSWD, PASSPHRASE or CREDENTIAL, or a word KEY, KEYS, APIKEY and the like,
// not any word that ends so, such as MONKEY.
// Values shorter than MinLength and plain numbers (MAX_TOKENS=16384000) are left out.
func FromEnv(environ []string) []string {
	var values []string
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		if ok && len(value) >= MinLength && secretName(name) && strings.Trim(value, "0123456789") != "" {
			values = append(values, value)
		}
	}
	return values
}

func secretName(name string) bool {
	name = strings.ToUpper(name)
	for _, w := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"} {
		if strings.Contains(name, w) {
			return true
		}
	}
	for w := range strings.SplitSeq(name, "_") {
		w = strings.TrimSuffix(w, "S")
		if w == "KEY" {
			return true
		}
		for _, kind := range []string{"API", "ACCESS", "AUTH", "PRIVATE", "SIGNING", "ENCRYPTION"} {
			if strings.HasSuffix(w, kind+"KEY") {
				return true
			}
		}
	}
	return false
}
