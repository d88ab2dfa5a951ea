package configapi

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// typeBase is where problems are explained, one heading each.
const typeBase = "https://github.com/canaryctl/canaryctl/blob/main/docs/reference/serve.md#"

// problem is an error as RFC 9457 has it. It implements error.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	ETag  string `json:"etag,omitempty"`  // the document's, where a precondition failed
	Token uint64 `json:"token,omitempty"` // the highest seen, where an older one was refused
}

// Error implements error.
func (p *problem) Error() string { return p.Title + ": " + p.Detail }

// kind is a sort of problem; its id is a heading of the reference.
type kind struct {
	id     string
	title  string
	status int
}

// The problems there are.
var (
	invalidName      = kind{"invalid-name", "Invalid service name", http.StatusBadRequest}
	invalidHeader    = kind{"invalid-header", "Invalid header", http.StatusBadRequest}
	invalidJSON      = kind{"invalid-json", "Not a JSON object", http.StatusBadRequest}
	unauthorized     = kind{"unauthorized", "Token missing or wrong", http.StatusUnauthorized}
	notFound         = kind{"not-found", "Not found", http.StatusNotFound}
	methodNotAllowed = kind{"method-not-allowed", "Method not allowed", http.StatusMethodNotAllowed}
	staleToken       = kind{"stale-token", "A newer lock holder has been seen", http.StatusConflict}
	preconditionFail = kind{"precondition-failed", "The document is not the one that was read", http.StatusPreconditionFailed}
	tooLarge         = kind{"too-large", "Document too large", http.StatusRequestEntityTooLarge}
	unsupportedMedia = kind{"unsupported-media-type", "Not sent as JSON", http.StatusUnsupportedMediaType}
	misdirected      = kind{"misdirected", "Not a name of this machine", http.StatusMisdirectedRequest}
	invalidDocument  = kind{"invalid-document", "Document breaks a rule", http.StatusUnprocessableEntity}
	keyReused        = kind{"key-reused", "Idempotency key was used for another document", http.StatusUnprocessableEntity}
	preconditionNone = kind{"precondition-required", "Precondition required", http.StatusPreconditionRequired}
	internal         = kind{"internal", "The server failed", http.StatusInternalServerError}
	full             = kind{"full", "No room for another service", http.StatusInsufficientStorage}
)

func (k kind) because(detail string) *problem {
	return &problem{Type: typeBase + k.id, Title: k.title, Status: k.status, Detail: detail}
}

// write answers with the problem. What else the answer needs is in its headers
// already.
func (p *problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the client has gone
}
