// Package image builds a container image with one layer from files of this
// machine and writes it as a tar file, without a registry or a container
// runtime. containerd reads such a file with `ctr image import`.
//
// The same files give the same bytes: entries are sorted and carry no times.
// For a program that is linked against shared libraries, Libraries finds the
// loader and the libraries that it needs here (it calls ldd), so that a cgo
// program runs in an image that holds nothing else.
//
// Needs no root. Tested by reading the image back.
package image
