// Package scenarios holds scenario files with known results, and the test that
// runs them. README.md beside it is the format's documentation.
package scenarios
