package trace_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/canaryctl/canaryctl/internal/trace"
)

func ExampleReadFiles() {
	log := `{"ts":"2026-05-04T00:00:10Z","build":"v1","latency_ms":100,"solved":true}
{"ts":"2026-05-04T00:00:50Z","build":"v1","latency_ms":300,"solved":null}
{"ts":"2026-05-04T00:02:00Z","build":"v2","latency_ms":200,"solved":false}
`
	m, err := trace.ParseMapping("version=build")
	if err != nil {
		fmt.Println(err)
		return
	}
	opt := trace.Options{Map: m}
	for _, arm := range []string{"stable=v1", "canary=v2"} {
		if err := opt.ParseArm(arm); err != nil {
			fmt.Println(err)
			return
		}
	}
	data, err := trace.ReadFiles(context.Background(), []string{"-"}, strings.NewReader(log), opt, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	columns, err := trace.ParseColumns("t,arm,total,judged,solved,violations,p99_ms")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := trace.WriteCSV(os.Stdout, data.Windows, columns); err != nil {
		fmt.Println(err)
	}
	// Output:
	// t,arm,total,judged,solved,violations,p99_ms
	// 2026-05-04T00:00:00Z,stable,2,1,1,,300
	// 2026-05-04T00:02:00Z,canary,1,1,0,,200
}
