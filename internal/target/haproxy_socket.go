package target

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// haproxyAnswer is how much of an answer is read: some 400 bytes a server.
const haproxyAnswer = 4 << 20

// haproxySocket is HAProxy's runtime API (its Management Guide, section 9.3).
type haproxySocket struct {
	network, address string
	timeout          time.Duration // of one connection
}

// ask sends commands in one line and returns the answer to each, without the
// empty line that ends it: "" is the answer to a command that sets something.
// HAProxy runs none before the line is complete, and closes behind the last.
func (s haproxySocket) ask(ctx context.Context, commands ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, s.network, s.address)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // everything is read, or it failed
	stop := context.AfterFunc(ctx, func() {
		_ = conn.SetDeadline(time.Unix(1, 0)) // ends what is under way; fails only when closed
	})
	defer stop()
	if _, err := io.WriteString(conn, strings.Join(commands, "; ")+"\n"); err != nil {
		return nil, because(ctx, err)
	}
	r := bufio.NewReader(io.LimitReader(conn, haproxyAnswer))
	var answers []string
	for range commands {
		answer, err := readAnswer(r)
		if err != nil {
			return nil, because(ctx, err)
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// because returns why ctx ended, which ended the connection, else err.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// readAnswer reads up to an empty line.
func readAnswer(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		switch {
		case errors.Is(err, io.EOF):
			return "", errors.New("the answer breaks off")
		case err != nil:
			return "", err
		case line == "\n":
			return strings.TrimSuffix(b.String(), "\n"), nil
		}
		b.WriteString(line)
	}
}

// haproxyServer is a server of a backend.
type haproxyServer struct {
	name   string
	weight string // as set, whatever a slow start makes of it
	admin  int64  // what people have ordered: maintenance or draining; 0: nothing
	down   bool   // its checks say so
	backup bool   // takes requests only when no other can
}

// takesPart reports whether a server gets requests, or would as soon as its
// checks succeed.
func (s haproxyServer) takesPart() bool { return s.weight != "0" && s.admin == 0 && !s.backup }

// parseServers reads the answers of `show servers state` and `show stat`. The
// first has the weights and what people have ordered, but not who is a backup;
// the second shows DRAIN for a mere weight of 0.
func parseServers(state, stat string) ([]haproxyServer, error) {
	rows, err := stateRows(state)
	if err != nil {
		return nil, fmt.Errorf("show servers state: %w", err)
	}
	backups, err := backupServers(stat)
	if err != nil {
		return nil, fmt.Errorf("show stat: %w", err)
	}
	var servers []haproxyServer
	for _, row := range rows {
		admin, err := strconv.ParseInt(row["srv_admin_state"], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("show servers state: srv_admin_state: %w", err)
		}
		servers = append(servers, haproxyServer{
			name: row["srv_name"], weight: row["srv_uweight"], admin: admin,
			down: row["srv_op_state"] == "0", backup: slices.Contains(backups, row["srv_name"]),
		})
	}
	return servers, nil
}

// stateRows reads a version, the names of the columns behind "#", and a row a
// server, all with blanks between.
func stateRows(text string) ([]map[string]string, error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 2 || lines[0] != "1" || !strings.HasPrefix(lines[1], "# ") {
		return nil, errors.New("version 1 of the format is wanted")
	}
	names := strings.Fields(lines[1])[1:]
	for _, name := range []string{"srv_name", "srv_uweight", "srv_admin_state", "srv_op_state"} {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("no column %s", name)
		}
	}
	var rows []map[string]string
	for _, line := range lines[2:] {
		cells := strings.Fields(line)
		if len(cells) < len(names) {
			return nil, errors.New("a row is too short")
		}
		row := map[string]string{}
		for i, name := range names {
			row[name] = cells[i]
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// backupServers returns the names of the servers that are backups.
func backupServers(text string) ([]string, error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "# ")))
	r.FieldsPerRecord = -1
	r.LazyQuotes = true // results of checks are quoted as they come
	rows, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, errors.New("no names of columns")
	}
	name, backup := slices.Index(rows[0], "svname"), slices.Index(rows[0], "bck")
	if name < 0 || backup < 0 {
		return nil, errors.New("no columns svname and bck")
	}
	var names []string
	for _, row := range rows[1:] {
		if len(row) <= max(name, backup) {
			return nil, errors.New("a row is too short")
		}
		if row[backup] == "1" {
			names = append(names, row[name])
		}
	}
	return names, nil
}
