package source

import (
	"os"
	"path/filepath"
	"testing"
)

// sharedFile reads a file of the public data kept beside the checkout, and
// skips where it is absent.
func sharedFile(t *testing.T, name string) []byte {
	t.Helper()
	dir := os.Getenv("CANARYCTL_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	data, err := os.ReadFile(filepath.Join(dir, "data", filepath.FromSlash(name)))
	if err != nil {
		t.Skipf("no public data: %v (set CANARYCTL_SHARED)", err)
	}
	return data
}
