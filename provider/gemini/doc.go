// SPDX-License-Identifier: Apache-2.0

// Package gemini speaks to Google's Gemini models over generateContent, at the
// Gemini API and, by address and token, at Vertex AI.
//
// Format: https://ai.google.dev/api/generate-content, as of November 2026. The
// wire structs are ours, since the official SDK decodes arguments into maps, which
// loses digits and the order of keys, and since its stream reader fails on lines
// that are not data. Nothing is retried.
package gemini
