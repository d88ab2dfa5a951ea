package trace

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// envoyShape is Envoy's access log in JSON, with the fields that Envoy AI
// Gateway adds (envoyproxy/ai-gateway). Which fields there are, and what they
// are called, is the user's own; these are the names of Envoy's and the
// gateway's documentation.
var envoyShape = &shape{
	name: "envoy", time: "start_time", one: "request", many: "requests",
	is: func(k *keys) bool {
		return !k.own() && k.has("start_time", "duration") && k.any("response_flags", "response_code", "upstream_cluster", "x-envoy-upstream-service-time")
	},
	read: readEnvoy,
}

// The response flags of Envoy, in short, by what they say of a request whose
// status says that it went well.
var (
	// envoyHungUp: the client closed its connection.
	envoyHungUp = []string{"DC", "DPE", "DR"}
	// envoyBroke: the answer did not come whole.
	envoyBroke = []string{"UF", "UC", "UT", "UR", "LR", "UH", "UO", "URX", "UPE", "SI", "DT", "UMSDR", "NC", "NR", "LH", "OM", "RFCF"}
)

func readEnvoy(b *bag, r *row) (bool, error) {
	start, err := b.moment(NoUnit, "start_time")
	if err != nil {
		return false, err
	}
	r.start(start)
	r.scaled(FieldLatency, b.text("duration"), 0)
	r.whole(FieldOutputTokens, b.text("gen_ai.usage.output_tokens"))
	r.give(FieldModel, b.text("gen_ai.response.model", "gen_ai.request.model"))
	r.give(FieldVersion, b.text("version", "gen_ai.provider.name", "upstream_cluster"))
	envoyStatus(b.text("response_code"), b.text("response_flags"), r)
	return true, nil
}

// envoyStatus fills in the status. The code is what was sent, if anything was:
// flags tell of an answer that began with 200 and broke off.
func envoyStatus(code, flags []byte, r *row) {
	hungUp, broke := false, false
	for flag := range bytes.SplitSeq(flags, []byte(",")) {
		flag = bytes.TrimSpace(flag)
		hungUp = hungUp || slices.Contains(envoyHungUp, string(flag))
		broke = broke || slices.Contains(envoyBroke, string(flag))
	}
	o, _ := statusOutcome(code)
	none := len(code) == 0 || string(code) == "0" // nothing was sent
	switch {
	case hungUp && (none || o == statusOK):
		r.give(FieldStatus, hungUpText)
	case broke && (none || o == statusOK):
		r.give(FieldStatus, errorText)
		if !none {
			r.flagged(FieldStreamAborted, true)
		}
	case string(code) == "0":
		r.give(FieldStatus, errorText)
	default:
		r.give(FieldStatus, code)
	}
}

// nginxShape is an access log of nginx with log_format escape=json, in the names
// of its variables.
var nginxShape = &shape{
	name: "nginx", time: "time_iso8601", one: "request", many: "requests",
	is: func(k *keys) bool {
		return !k.own() && k.has("request_time", "status") && k.any("msec", "time_iso8601", "time_local", "time", "timestamp", "@timestamp") &&
			k.any("remote_addr", "upstream_response_time", "upstream_addr", "body_bytes_sent", "bytes_sent", "request_uri", "http_user_agent", "request_length")
	},
	read: readNginx,
}

func readNginx(b *bag, r *row) (bool, error) {
	end, err := b.moment(Seconds, "msec")
	if err == nil && !end.known {
		end, err = b.moment(NoUnit, "time_iso8601", "timestamp", "@timestamp", "time")
	}
	if err == nil && !end.known {
		end, err = nginxLocal(b.text("time_local"))
	}
	if err != nil {
		return false, err
	}
	// nginx logs when a request ends; request_time, in seconds, is how long it took.
	took, fig := parseNumber(b.text("request_time"))
	if ns, ok := took.floor(9); ok && fig == finite && ns >= 0 && end.known {
		end.ns -= ns
	}
	r.start(end)
	r.scaled(FieldLatency, b.text("request_time"), 3)
	r.give(FieldStatus, b.text("status"))
	return true, nil
}

// nginxLocal reads $time_local: 30/Nov/2026:10:00:00 +0000.
func nginxLocal(text []byte) (moment, error) {
	if text == nil {
		return moment{}, nil
	}
	t, err := time.Parse("02/Jan/2006:15:04:05 -0700", string(text))
	if err != nil || t.Year() < 1680 || t.Year() > 2259 {
		return moment{}, &badRow{fmt.Sprintf("time_local %s is not a time", quote(text))}
	}
	return moment{t.UnixNano(), true}, nil
}
