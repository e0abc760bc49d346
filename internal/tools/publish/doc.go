// SPDX-License-Identifier: Apache-2.0

// Package publish does for Go modules what a dry run of a release does: it builds
// the zips that a module proxy would serve from the committed tree, looks at what
// is in them, and uses them as a stranger would, from outside the repository.
//
// A module of the tree is published unless its folder lies in internal or is one
// of those that [Unpublished] names. Zips are built by golang.org/x/mod/zip, which
// holds the rules of https://go.dev/ref/mod#zip-files; the proxy is a folder in
// the layout of https://go.dev/ref/mod#goproxy-protocol.
package publish
