package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// recordingMagic begins a recording of HTTP exchanges of httprr
// (golang.org/x/oscar/internal/httprr): a line with the bytes of a request and
// of its response, then both as they went over the wire.
const recordingMagic = "httprr trace v1"

// recordingShape is such a recording of an OpenAI-compatible API.
var recordingShape = &shape{name: "httprr", time: "created", one: "answer", many: "answers", is: func(*keys) bool { return false }, strict: true}

// recordingRows reads a recording. Its rows are numbered by exchange.
type recordingRows struct {
	text  *bufio.Reader
	begun bool
	n     int64
}

func (p *recordingRows) restart()     {}
func (p *recordingRows) cutOff() bool { return false }

func (p *recordingRows) next(b *bag, r *row) (bool, error) {
	b.reset()
	request, response, err := p.exchange()
	r.line = p.n
	if err != nil {
		return false, err
	}
	r.raw = response
	if !bytes.Contains(firstLine(request), []byte("/completions")) && !bytes.Contains(firstLine(request), []byte("/responses")) {
		return false, nil
	}
	head, body, ok := bytes.Cut(response, []byte("\r\n\r\n"))
	if !ok {
		head, body, _ = bytes.Cut(response, []byte("\n\n"))
	}
	status := bytes.Fields(firstLine(head))
	if len(status) < 2 {
		return false, &badRow{"an HTTP response without a status"}
	}
	if date, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", string(headerOf(head, "date"))); err == nil {
		r.start(moment{date.UnixNano(), date.Year() >= 1970 && date.Year() < 2200})
	}
	return true, readCompletion(body, status[1], b, r)
}

// exchange reads the next request and its response.
func (p *recordingRows) exchange() (request, response []byte, err error) {
	if !p.begun {
		if _, err := p.text.ReadSlice('\n'); err != nil {
			return nil, nil, err
		}
		p.begun = true
	}
	line, err := p.text.ReadSlice('\n')
	if blank(line) && errors.Is(err, io.EOF) {
		return nil, nil, io.EOF
	}
	p.n++
	var sizes [2]int
	n, scanned := fmt.Sscanf(string(line), "%d %d\n", &sizes[0], &sizes[1])
	if err != nil || scanned != nil || n != 2 || sizes[0] < 0 || sizes[1] < 0 || sizes[0] > maxLine || sizes[1] > maxLine {
		return nil, nil, fmt.Errorf("damaged: exchange %d does not begin with the sizes of a request and a response", p.n)
	}
	both := make([]byte, sizes[0]+sizes[1])
	if _, err := io.ReadFull(p.text, both); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("cut off: exchange %d does not end", p.n)
		}
		return nil, nil, err
	}
	return both[:sizes[0]], both[sizes[0]:], nil
}

func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return line
}

// headerOf is the value of an HTTP header, nil where there is none.
func headerOf(head []byte, name string) []byte {
	for line := range bytes.Lines(head) {
		if k, v, ok := bytes.Cut(line, []byte(":")); ok && bytes.EqualFold(k, []byte(name)) {
			return bytes.TrimSpace(v)
		}
	}
	return nil
}
