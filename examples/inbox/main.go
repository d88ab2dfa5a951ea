// Command inbox takes what is posted to it and prints each body as a line, in
// the place of a chat or a pager.
//
//	go run ./examples/inbox -listen 127.0.0.1:8083 >> inbox.jsonl
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8083", "`address` to listen at")
	flag.Parse()
	var mu sync.Mutex
	take := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		var line bytes.Buffer
		if err != nil || json.Compact(&line, body) != nil {
			http.Error(w, "one JSON document, please", http.StatusBadRequest)
			return
		}
		line.WriteByte('\n')
		mu.Lock()
		defer mu.Unlock()
		if _, err := os.Stdout.Write(line.Bytes()); err != nil {
			http.Error(w, "it could not be kept", http.StatusInternalServerError)
		}
	}
	server := &http.Server{Addr: *listen, Handler: http.HandlerFunc(take), ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}
