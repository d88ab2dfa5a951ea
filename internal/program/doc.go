// Package program sets up the programs of others that canaryctl starts: hooks,
// a target's own programs, git.
package program
