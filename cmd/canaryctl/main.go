// Command canaryctl decides, on evidence, how far a new version of an LLM
// application may go. See README.md.
package main

import (
	"os"

	"github.com/canaryctl/canaryctl/internal/cli"
	"github.com/canaryctl/canaryctl/scenarios"
)

func main() {
	os.Exit(int(cli.Main(os.Args[1:], app())))
}

func app() *cli.App {
	return &cli.App{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Scenarios: scenarios.FS}
}
