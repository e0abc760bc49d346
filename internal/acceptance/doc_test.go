// SPDX-License-Identifier: Apache-2.0

// Package acceptance holds tests that need several modules at once: scripted
// conversations between the engine, the real adapters and a server that answers
// byte for byte; prompt prefixes over random conversations; processes that are
// killed. It has no code beside its tests, so that no vendor's SDK reaches the
// root module.
package acceptance
