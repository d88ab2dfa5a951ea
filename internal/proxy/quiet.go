package proxy

import (
	"bytes"
	"io"
	"log"
)

// Quiet keeps texts of answers out of the log of the process until restore is
// called: net/http writes what an upstream sends unasked to the standard logger,
// and takes no other.
func Quiet() (restore func()) {
	was := log.Writer()
	log.SetOutput(withoutAnswers{was})
	return func() { log.SetOutput(was) }
}

// withoutAnswers passes on what holds no text of an answer.
type withoutAnswers struct{ io.Writer }

// Write implements [io.Writer].
func (w withoutAnswers) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("Unsolicited response received")) {
		return len(line), nil
	}
	return w.Writer.Write(line)
}
