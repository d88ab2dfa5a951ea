// Command traffic asks a chat completion so many times a second, as the users
// of a service would.
//
//	go run ./examples/traffic -url http://127.0.0.1:8080/v1 -rate 200 -users 5000
//
// It goes on until it is told to end, or for the time of -for, and says how
// many requests were not answered with 200.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// atOnce bounds the requests under way: a gateway that does not answer gets no
// more of them.
const atOnce = 256

func main() {
	url := flag.String("url", "http://127.0.0.1:8080/v1", "`address` of the API, up to /v1")
	rate := flag.Float64("rate", 200, "requests a second, at most 10000")
	users := flag.Int("users", 5000, "how many users there are")
	length := flag.Duration("for", 0, "end after so long; 0: when it is told to")
	flag.Parse()
	if !(*rate > 0 && *rate <= 1e4) || *users < 1 {
		log.Fatal("-rate is above 0 and at most 10000, and -users at least 1")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *length)
		defer cancel()
	}
	asked, failed := drive(ctx, *url, *rate, *users)
	fmt.Printf("%d requests, %d of them not answered with 200\n", asked, failed)
}

// drive asks at an even pace until the context ends, and waits for the answers.
func drive(ctx context.Context, url string, rate float64, users int) (asked, failed int64) {
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}
	free := make(chan struct{}, atOnce)
	var bad atomic.Int64
	var wg sync.WaitGroup
	tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-tick.C:
		}
		asked++
		free <- struct{}{}
		user := fmt.Sprintf("C-%05d", rand.IntN(users))
		wg.Go(func() {
			defer func() { <-free }()
			if err := ask(client, url, user); err != nil {
				bad.Add(1)
			}
		})
	}
	wg.Wait()
	return asked, bad.Load()
}

func ask(client *http.Client, url, user string) error {
	body := strings.NewReader(`{"model": "order-7b", "messages": [{"role": "user", "content": "Where is my order?"}]}`)
	req, err := http.NewRequest(http.MethodPost, url+"/chat/completions", body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-User-Id", user)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}
