//go:build !unix

package cli

import "io/fs"

// onlyOwner is true where permissions are not kept in a file's mode.
func onlyOwner(fs.FileInfo) bool { return true }
