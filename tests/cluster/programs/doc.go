// Package programs builds the programs of a cluster from Go modules and keeps
// them in a cache folder.
//
// Each entry of All is one module below tests/cluster/programs (its go.mod pins
// the versions) and the packages that are built from it. A module is built once
// per version: the folder's name holds a hash of go.mod, go.sum and the build
// flags, so a changed version never uses an old program. A build goes to a
// temporary folder that is renamed when it is complete.
//
// Only the Go toolchain is needed, for runc also libseccomp's headers and
// pkg-config. The package says what is missing before it starts to build.
//
// It starts `go` and nothing else (and `apt-get` when asked to install
// packages). Builds are sequential; two processes exclude each other per
// module by a lock file. Tested with a tiny module, without root.
package programs
