package cli

import "errors"

// ExitCode is the process's exit status. The table is part of the contract
// with pipelines and is printed under EXIT STATUS in the help.
type ExitCode int

// The exit codes (DESIGN section 10).
const (
	ExitOK          ExitCode = 0   // done: started, advanced, completed
	ExitFailed      ExitCode = 1   // canaryctl itself failed
	ExitUsage       ExitCode = 2   // the command line, the configuration or the input cannot be used
	ExitHeld        ExitCode = 3   // held or probing
	ExitApproval    ExitCode = 4   // awaiting approval
	ExitRolledBack  ExitCode = 5   // rolled back or locked
	ExitIncomplete  ExitCode = 6   // rollback incomplete
	ExitDrift       ExitCode = 7   // the weight is not what was last read back
	ExitConflict    ExitCode = 8   // someone else moved
	ExitSource      ExitCode = 9   // the source could not be read; the weight is untouched
	ExitExpectation ExitCode = 10  // an expectation was not met (simulate)
	ExitNoise       ExitCode = 11  // the asked-for threshold lies in the noise, or a step can never be judged (calibrate)
	ExitHungUp      ExitCode = 129 // SIGHUP: the terminal has gone
	ExitInterrupted ExitCode = 130 // Ctrl-C
	ExitTerminated  ExitCode = 143 // SIGTERM
)

// Error is an error that knows its exit code and what the user can do about
// it. A nil Err prints nothing: what there was to say has been said.
type Error struct {
	Code ExitCode
	Err  error
	Hint string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err == nil {
		return "exit status"
	}
	return e.Err.Error()
}

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// usage wraps an error that the user can mend, with a hint of how (or "").
func usage(err error, hint string) error {
	return &Error{Code: ExitUsage, Err: err, Hint: hint}
}

// silent ends the command with a code after everything has been said.
func silent(code ExitCode) error { return &Error{Code: code} }

// codeOf returns the exit code of a command's error.
func codeOf(err error) ExitCode {
	if err == nil {
		return ExitOK
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ExitFailed
}
