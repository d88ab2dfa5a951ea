package trace

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// ReadWhole reads a file of records that is judged whole: all of it is one
// window, of the arm all, whatever the times of its records; they need not
// carry any. path "-" is stdin. The window has no time of its own: T and Span
// are zero, and First and Last of the Data too where no record has one. Under
// [Options].Distributions, Data.TTFT and Data.ITL are gathered as well.
//
// Every row counts, also one that equals another: without a time, nothing tells
// a request that was logged twice from two. Only a span of OTLP, which has an id
// of its own, counts once. Each of the Notes begins with the path.
//
// It reads what [ReadFiles] reads but for windows, and the files of LLMPerf as
// they are. Span, InputSpan and MergeArms of opt do not matter; Arms leaves out
// the rows of other versions. The Data is there with an error as well, for
// messages. Errors are those of ReadFiles without the [*NoTimeError].
func ReadWhole(ctx context.Context, path string, stdin io.Reader, opt Options) (release.Window, *Data, error) {
	opt.whole, opt.MergeArms, opt.Span, opt.InputSpan = true, true, 0, 0
	f := newFeed(opt)
	defer f.data.nameFile(path)
	if err := f.readFile(ctx, path, stdin, nil); err != nil {
		return release.Window{}, f.data, err
	}
	if err := f.finish([]string{path}); err != nil {
		return release.Window{}, f.data, err
	}
	if f.data.Kind != Records {
		return release.Window{}, f.data, &InputError{File: path, Msg: notWhole, Advice: "count the requests themselves, a row each"}
	}
	f.data.Span = 0
	return f.data.Windows[0], f.data, nil
}

const notWhole = "holds windows; only records are judged whole"

// noTime stands for the time of a record that carries none.
const noTime = -maxTime - 1

// timeOf reads when a row starts, noTime where it says nothing and need not.
func (o *Options) timeOf(p *plan, c *clock, r *row) (int64, error) {
	if cell := r.cells[p.time]; !p.timeless && cell.present() {
		return c.instant(cell.text)
	}
	if o.whole {
		return noTime, nil
	}
	return 0, &badRow{"no " + p.timeColumn()}
}

// nameFile lets every note say which file it is about.
func (d *Data) nameFile(path string) {
	for i, n := range d.Notes {
		if !strings.HasPrefix(n, path+": ") {
			d.Notes[i] = path + ": " + n
		}
	}
}

// place gives a window its time and length, which one of all records has not.
func (c *counter) place(w *release.Window, t int64) {
	if !c.opt.whole {
		w.T, w.Span = instantOf(t), time.Duration(c.span)
	}
}
