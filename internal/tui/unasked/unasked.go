// Package unasked keeps the terminal from being asked for its background colour
// by every command of canaryctl, also those that draw nothing.
//
// bubbletea asks as it is initialised, through lipgloss's default renderer: a
// question on the terminal, an answer that can end up in front of the next
// prompt, and seconds of waiting where no answer comes. A renderer that was told
// does not ask. Packages are initialised in the order of their import paths as
// soon as what they import is (The Go Programming Language Specification,
// Program initialization), and this one's comes before bubbletea's.
//
// The view asks by itself where it wants to know.
package unasked

import "github.com/charmbracelet/lipgloss"

func init() { lipgloss.SetHasDarkBackground(true) }
