package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/common/model"
)

// Answer is a successful answer to /api/v1/query_range of the Prometheus HTTP
// API.
type Answer struct {
	Series  model.Matrix
	Said    []string // the server's warnings and infos
	Partial bool     // the server says that some of the data is missing
}

// AnswerError is an answer in which the server says why it has none.
type AnswerError struct{ Type, Message string }

// Error implements error.
func (e *AnswerError) Error() string {
	return fmt.Sprintf("Prometheus answered with an error, %s: %s", e.Type, e.Message)
}

// ParseAnswer reads the body of an answer. The error is an [*AnswerError] where
// the server explains itself, and else says what the body is instead. Whether a
// figure is there, and is finite, is left to the caller.
func ParseAnswer(body []byte) (Answer, error) {
	var ans struct {
		Status    string `json:"status"`
		ErrorType string `json:"errorType"`
		Error     string `json:"error"`
		Data      struct {
			ResultType string          `json:"resultType"`
			Result     json.RawMessage `json:"result"`
		} `json:"data"`
		Warnings []string `json:"warnings"`
		Infos    []string `json:"infos"`
		Partial  bool     `json:"isPartial"`
	}
	if err := json.Unmarshal(body, &ans); err != nil {
		if !json.Valid(body) {
			return Answer{}, fmt.Errorf("the Prometheus answer is cut off or damaged: %w", err)
		}
		return Answer{}, fmt.Errorf("the Prometheus answer is not as the API documents it: %w", err)
	}
	switch {
	case ans.Status == "error":
		return Answer{}, &AnswerError{ans.ErrorType, ans.Error}
	case ans.Status != "success":
		return Answer{}, fmt.Errorf("the Prometheus answer has status %s", quote([]byte(ans.Status)))
	case ans.Data.ResultType != "matrix":
		return Answer{}, fmt.Errorf("the Prometheus answer is a %s; windows need the matrix of query_range", printable(ans.Data.ResultType))
	}
	var m model.Matrix
	if err := json.Unmarshal(ans.Data.Result, &m); err != nil {
		return Answer{}, fmt.Errorf("the Prometheus answer's result: %w", err)
	}
	if m == nil {
		return Answer{}, errors.New("the Prometheus answer has no result")
	}
	for _, s := range m {
		if len(s.Histograms) > 0 {
			return Answer{}, fmt.Errorf("series %s holds native histograms, not numbers", s.Metric)
		}
	}
	return Answer{Series: m, Said: slices.Concat(ans.Warnings, ans.Infos), Partial: ans.Partial}, nil
}
