// Package testkit finds what tests need of the machine and the checkout. A
// test that cannot have it fails with the command that brings it: a skipped
// test would read as a passed one.
package testkit
