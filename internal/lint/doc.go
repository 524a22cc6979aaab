// Package lint holds the laws of the house as tests: what must hold of the
// tree as a whole and no compiler checks. It has no code of its own.
package lint
