//go:build unix

package cli

import "io/fs"

// onlyOwner reports whether nobody but its owner may read a file.
func onlyOwner(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }
