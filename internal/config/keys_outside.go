package config

import "slices"

// The words of the keys below source, target, notify and hooks.
var (
	armWords        = []string{"canary", "stable"}
	presetWords     = []string{"vllm", "sglang", "litellm", "gen_ai", "envoy_ai_gateway", "envoy", "nginx_ingress"}
	unitWords       = []string{"fraction", "percent", "permille", "basis_points"}
	apiModeWords    = []string{"put", "merge_patch", "json_patch", "template"}
	writeWords      = []string{"PUT", "PATCH", "POST"}
	matchWords      = []string{"auto", "weak", "off"}
	gitModeWords    = []string{"push", "branch"}
	methodWords     = []string{"POST", "PUT", "PATCH", "DELETE", "GET"}
	onCompleteWords = []string{string(KeepVersions), string(SwapVersions)}
	eventWords      = []string{
		"started", "advanced", "completed", "rolled_back", "locked", "lock_cleared", "rollback_incomplete", "probing", "recovered",
		"awaiting_approval", "overdue", "drift", "drift_over", "share_mismatch", "share_ok", "source_lost", "source_back",
		"target_lost", "target_back", "write_refused", "paused", "resumed", "hook_failed",
	}
)

func outsideKeys() []key {
	return slices.Concat(sourceKeys(), targetKeys(), stateKeys, notifyKeys(), hookKeys())
}

// at puts rows whose paths are names below a path.
func at(path string, rows ...key) []key {
	for i := range rows {
		rows[i].path = path + "." + rows[i].path
	}
	return rows
}

// address is the two ways of giving an address, of which a mapping has one.
func address(what string) []key {
	return []key{
		{path: "url", kind: kindText, form: httpURL, doc: what + " Either this or url_env."},
		{path: "url_env", kind: kindText, form: envName, doc: "The environment variable that holds the address."},
	}
}

func tokenEnv() key {
	return key{path: "token_env", kind: kindText, form: envName, doc: "The environment variable that holds the token."}
}

func headers() key {
	return key{path: "headers", kind: kindPairs, names: headerName, form: headerText, doc: "Headers that are sent; `${NAME}` is taken from the environment when it is sent."}
}

func timeout(def, what string) key {
	return key{path: "timeout_s", kind: kindSeconds, def: def, min: ">0", max: "3600", doc: what}
}

// selectors are where a document holds the weights.
func selectors(canary, stable string) []key {
	return []key{
		{path: "canary", kind: kindText, form: selector, def: canary, doc: "Where the document holds the canary's weight: keys and `[...]` for items of lists."},
		{path: "stable", kind: kindText, form: oneLine, def: stable, doc: "Where it holds stable's weight; `-` where there is none."},
	}
}

func unit() []key {
	return []key{
		{path: "unit", kind: kindUnit, def: "fraction", words: unitWords, doc: "How weights are written: fraction (of 1, 6 decimals), percent (2 decimals), permille (1), basis_points (0), or of how many they are a part. Every step's share must be held exactly."},
		{path: "unit.whole", kind: kindCount, required: true, min: "1", max: "1e9", doc: "What all of the traffic is written as: 100, 256, 100000."},
		{path: "unit.places", kind: kindCount, def: "0", min: "0", max: "9", doc: "Decimals at most."},
	}
}

func sourceKeys() []key {
	file := func(path, what, span, settle string) []key {
		return slices.Concat([]key{{path: path, kind: kindMap, doc: what}}, at(path,
			key{path: "path", kind: kindPaths, required: true, doc: "Path, directory or pattern, or a list of them."},
			key{path: "span_min", kind: kindMinutes, def: "1", min: ">0", doc: span},
			key{path: "settle_min", kind: kindMinutes, min: "0", doc: "Windows that ended less than this ago are not read yet. Left out: " + settle},
			key{path: "stale_min", kind: kindMinutes, def: "0", min: "0", doc: "With no window with requests for so long the source counts as lost; 0 = never."},
			key{path: "max_bad", kind: kindDecimal, def: "0.001", min: "0", max: "1", doc: "Largest share of lines that cannot be read."},
			timeout("30", "Of one reading, seconds."),
			key{path: "map", kind: kindFree, doc: "Columns of the file by the names of the fields."},
			key{path: "arms", kind: kindFree, doc: "Values of `version` or `model` by arm."},
		))
	}
	return slices.Concat(
		[]key{{path: "source", kind: kindMap, oneOf: true, doc: "Where live windows come from: one of its keys."}},
		file("source.windows", "Files of windows.", "Length of a window whose file does not say it.", "a quarter of span_min, 15 seconds at most, since exporters come late."),
		file("source.records", "Files of records, one a request.", "Length of the windows that records are counted into.", "span_min, a minute at most, since a record is written when its request ends."),
		prometheusKeys(),
	)
}

const promPath = "source.prometheus"

func prometheusKeys() []key {
	preset := &condition{key: "preset"}
	rows := slices.Concat(address("Its address."), []key{
		tokenEnv(), headers(),
		{path: "preset", kind: kindEnum, words: presetWords, doc: "Ready-made queries for vLLM, SGLang, LiteLLM, OpenTelemetry's gen_ai metrics, Envoy AI Gateway, Envoy and ingress-nginx."},
		{path: "matchers", kind: kindMap, when: preset, required: true, doc: "Label matchers that tell the arms apart, put into the preset's queries. They must differ."},
		{path: "matchers.canary", kind: kindText, form: matcher, required: true, doc: "The canary's: `version=\"canary\"`."},
		{path: "matchers.stable", kind: kindText, form: matcher, required: true, doc: "Stable's: `version=\"stable\"`."},
		{path: "queries", kind: kindNames, words: armWords, doc: "PromQL by arm and figure, over the preset's. Without a preset the canary's total is required. The two arms' queries must differ."},
		{path: "queries.*", kind: kindMap, doc: "An arm's queries, one a figure of a window. What is left out is not known. `-` takes the preset's query away."},
	}, queryKeys("queries.*"), []key{
		{path: "span_min", kind: kindMinutes, def: "1", min: ">0", doc: "Length of a window."},
		{path: "settle_min", kind: kindMinutes, def: "1", min: "0", doc: "Windows that ended less than this ago are not read yet: scrapes come late."},
		{path: "stale_min", kind: kindMinutes, min: "0", doc: "With no window with requests for so long the source counts as lost; 0 = never. Left out: 10, or settle_min and three windows where that is longer."},
		timeout("10", "Of one reading, seconds."),
	})
	return slices.Concat([]key{{path: promPath, kind: kindMap, doc: "A Prometheus server."}}, at(promPath, rows...))
}

// queryKeys are the figures of a window that a query can give.
func queryKeys(path string) []key {
	return at(path,
		key{path: "total", kind: kindText, doc: "Requests in the window."},
		key{path: "judged", kind: kindText, doc: "Requests whose outcome is known; left out: total."},
		key{path: "solved", kind: kindText, doc: "Requests that were solved."},
		key{path: "violations", kind: kindText, doc: "Answers that leaked past the guard rails."},
		key{path: "transfers", kind: kindText, doc: "Requests handed to a human."},
		key{path: "cost", kind: kindText, doc: "Mean cost of a request as a ratio to stable's; left out: from both arms' cost_mean."},
		key{path: "cost_mean", kind: kindText, doc: "Mean cost of a request, US dollars."},
		key{path: "p99_ms", kind: kindText, doc: "99th percentile latency, milliseconds."},
		key{path: "slow", kind: kindText, doc: "Requests slower than p99_baseline_ms."},
		key{path: "ttft_of", kind: kindText, doc: "Streams whose time to first token is known; left out: streams."},
		key{path: "ttft_p99_ms", kind: kindText, doc: "99th percentile of their time to first token, milliseconds."},
		key{path: "ttft_slow", kind: kindText, doc: "Those of them above the limit of ttft_slow; `$ttft_le` stands for the limit as a label of a bucket, in seconds."},
		key{path: "itl_of", kind: kindText, doc: "Streams whose inter-token latency is known; left out: streams."},
		key{path: "itl_ms", kind: kindText, doc: "Mean inter-token latency, milliseconds."},
		key{path: "streams", kind: kindText, doc: "Streams of which it is known how they ended; left out: total."},
		key{path: "aborted", kind: kindText, doc: "Those of them that broke off, without clients that hung up."},
		key{path: "status_of", kind: kindText, doc: "Requests with a known status; left out: total."},
		key{path: "errors", kind: kindText, doc: "Those of them that are not ok, refusals (429) among them."},
		key{path: "server_errors", kind: kindText, doc: "Those of them that are 5xx."},
		key{path: "kv_cache", kind: kindText, doc: "KV cache in use, the most in the window, a fraction of 1."},
	)
}

const (
	canaryAt = "versions.canary.weight"
	stableAt = "versions.stable.weight"
)

func targetKeys() []key {
	return slices.Concat(
		[]key{
			{path: "target", kind: kindMap, oneOf: true, doc: "Where weights are written: one of its keys."},
			{path: "target.file", kind: kindMap, doc: "A JSON or YAML document."},
			{path: "target.file.path", kind: kindText, form: oneLine, required: true, doc: "The file."},
		},
		at("target.file", slices.Concat(selectors(canaryAt, stableAt), unit())...),
		[]key{{path: "target.config_api", kind: kindMap, doc: "A configuration API over HTTP."}},
		at("target.config_api", apiKeys()...),
		gitKeys(),
		[]key{{path: "target.etcd", kind: kindMap, doc: "A key in etcd, over its JSON gateway."}},
		at("target.etcd", etcdKeys()...),
		[]key{{path: "target.haproxy", kind: kindMap, doc: "A backend of HAProxy, over its runtime API."}},
		at("target.haproxy",
			key{path: "address", kind: kindText, form: socket, required: true, doc: "The path of the socket, or host:port."},
			key{path: "backend", kind: kindText, form: word, required: true, doc: "The backend."},
			key{path: "canary", kind: kindText, form: word, def: "canary", doc: "The canary's server."},
			key{path: "stable", kind: kindText, form: word, def: "stable", doc: "Stable's server."},
			key{path: "total", kind: kindCount, def: "200", min: "1", max: "256", doc: "What the two servers' weights add up to. Every step's share must be a whole number of it."},
			timeout("10", "Of one command, seconds."),
		),
		[]key{{path: "target.unleash", kind: kindMap, doc: "A flexibleRollout strategy of a feature flag in Unleash. It holds whole percents."}},
		at("target.unleash", slices.Concat(address("Unleash's address, without /api."), []key{
			{path: "token_env", kind: kindText, form: envName, required: true, doc: "The environment variable that holds the token."},
			{path: "project", kind: kindText, form: oneLine, def: "default", doc: "The project."},
			{path: "feature", kind: kindText, form: oneLine, required: true, doc: "The feature flag."},
			{path: "environment", kind: kindText, form: oneLine, required: true, doc: "The environment."},
			{path: "strategy", kind: kindText, form: oneLine, doc: "The strategy's id. Left out: the only flexibleRollout of the environment."},
			timeout("10", "Of one request, seconds."),
		})...),
		[]key{{path: "target.exec", kind: kindMap, doc: "Two programs of one's own."}},
		at("target.exec", slices.Concat(
			command("read", true, "Prints the canary's weight: the program and its arguments, without a shell."),
			command("write", true, "Sets it; gets the change in the environment and as JSON on standard input."),
			unit(), []key{timeout("30", "Of one run, seconds.")})...),
	)
}

// command is a program and its arguments.
func command(name string, required bool, doc string) []key {
	return []key{
		{path: name, kind: kindList, required: required, minItems: 1, doc: doc},
		{path: name + "[]", kind: kindText, doc: "The program, or an argument."},
	}
}

func apiKeys() []key {
	return slices.Concat(address("The document's address."), []key{
		tokenEnv(),
		{path: "token_scheme", kind: kindText, form: word, def: "Bearer", doc: "What stands before the token in the header Authorization; `-` for the token alone."},
		headers(),
		{path: "read_url", kind: kindText, form: httpURL, doc: "Where it is read. Left out: the address."},
		{path: "write_url", kind: kindText, form: httpURL, doc: "Where it is written. Left out: the address."},
		{path: "mode", kind: kindEnum, def: "put", words: apiModeWords, doc: "`put` writes the whole document back, `merge_patch` (RFC 7396) and `json_patch` (RFC 6902) what changes, `template` the body."},
		{path: "write_method", kind: kindEnum, words: writeWords, doc: "Left out: PUT, and PATCH for patches."},
		{path: "body", kind: kindText, form: bodyText, when: &condition{"mode", "template"}, required: true, doc: "What is sent; {canary} {stable} {release} {attempt} {step} {key} are filled in."},
		{path: "content_type", kind: kindText, form: oneLine, doc: "Left out: that of the mode, such as application/merge-patch+json."},
	}, selectors(canaryAt, stableAt), unit(), []key{
		{path: "if_match", kind: kindEnum, def: "auto", words: matchWords, doc: "`auto` sends a strong ETag back as If-Match, `weak` a weak one too, `off` none."},
		{path: "state_at", kind: kindText, form: selector, def: "state", doc: "Where the document keeps the release's state, for `state: {in_target: true}`."},
		timeout("10", "Of one request, seconds."),
		{path: "read_back_s", kind: kindSeconds, def: "10", min: "0", max: "3600", doc: "How long an answer may be stale after a write, seconds."},
	})
}

func etcdKeys() []key {
	return slices.Concat([]key{
		{path: "endpoints", kind: kindList, required: true, minItems: 1, unique: true, doc: "Addresses of the members, tried in order."},
		{path: "endpoints[]", kind: kindText, form: httpURL, doc: "An address."},
		{path: "key", kind: kindText, form: oneLine, required: true, doc: "The key."},
		{path: "canary", kind: kindText, form: selector, doc: "Where the value, a JSON or YAML document, holds the canary's weight. Left out: the value is the weight itself."},
		{path: "stable", kind: kindText, form: oneLine, when: &condition{key: "canary"}, doc: "Where it holds stable's weight. Left out, or `-`: nowhere."},
	}, unit(), []key{
		{path: "user_env", kind: kindText, form: envName, doc: "The environment variable that holds the user's name."},
		{path: "password_env", kind: kindText, form: envName, when: &condition{key: "user_env"}, required: true, doc: "The environment variable that holds the password."},
		timeout("10", "Of one request, seconds."),
	})
}

func gitKeys() []key {
	branch := &condition{"mode", "branch"}
	open := command("open_command", false, "Run after the push, such as a forge's own program that opens a pull request.")
	open[0].when = branch
	rows := slices.Concat([]key{
		{path: "repo", kind: kindText, form: oneLine, def: ".", doc: "A clone, bare or not. Its checkout is left alone."},
		{path: "remote", kind: kindText, form: word, def: "origin", doc: "Where it is pushed to."},
		{path: "branch", kind: kindText, form: word, doc: "The branch that holds. Left out: the one that is checked out, or that the CI names."},
		{path: "files", kind: kindList, required: true, minItems: 1, doc: "The files with weights in them, all changed in one commit."},
		{path: "files[]", kind: kindMap, doc: "One file."},
		{path: "files[].path", kind: kindText, form: insidePath, required: true, doc: "Its path in the repository."},
		{path: "files[].document", kind: kindText, form: oneLine, doc: "Which document of several: `kind=HTTPRoute,metadata.name=llm`."},
	}, at("files[]", slices.Concat(selectors(canaryAt, stableAt), unit())...), []key{
		{path: "mode", kind: kindEnum, def: "push", words: gitModeWords, doc: "`push` commits to the branch, `branch` to one of its own, for a pull request."},
		{path: "work_branch", kind: kindText, form: word, when: branch, doc: "The branch of its own. Left out: canaryctl/ and the service."},
	}, open, []key{
		{path: "author_name", kind: kindText, form: gitName, doc: "The author of the commits. Left out: the one of the git configuration, else canaryctl."},
		{path: "author_email", kind: kindText, form: gitName, doc: "The author's address."},
		{path: "sign", kind: kindBool, def: "false", doc: "Commits are signed as the git configuration says; false leaves that to commit.gpgsign."},
		{path: "state_path", kind: kindText, form: insidePath, doc: "The file in the repository that keeps the release's state, for `state: {in_target: true}`. Left out: .canaryctl/ and the service, .json."},
		{path: "deadline_s", kind: kindSeconds, def: "30", min: ">0", max: "3600", doc: "For all tries of one write, seconds."},
	})
	return slices.Concat([]key{{path: "target.git", kind: kindMap, doc: "Values in files of a git repository."}}, at("target.git", rows...))
}

var stateKeys = []key{
	{path: "state", kind: kindMap, doc: "Where a release's state is kept."},
	{path: "state.dir", kind: kindText, form: oneLine, def: ".canaryctl", doc: "The directory of journal, locks and state."},
	{path: "state.in_target", kind: kindBool, def: "false", doc: "Keeps the state in the target as well, in the write that moves the weight, so that another machine can go on. For git and config_api."},
	{path: "on_complete", kind: kindEnum, def: string(KeepVersions), words: onCompleteWords, doc: "What happens after completion: `keep` leaves the versions document, `swap` makes the canary its stable. For file and config_api."},
}

func notifyKeys() []key {
	channel := func(name, what string, own ...key) []key {
		return slices.Concat([]key{{path: "notify[]." + name, kind: kindMap, doc: what}}, at("notify[]."+name, slices.Concat(address("Its address."), own, []key{
			{path: "events", kind: kindList, minItems: 1, unique: true, doc: "Which transitions are told. Left out: all."},
			{path: "events[]", kind: kindEnum, words: eventWords, doc: "A transition."},
			timeout("10", "Of one delivery, seconds."),
		})...))
	}
	secret := func() key {
		return key{path: "secret_env", kind: kindText, form: envName, doc: "The environment variable that holds what messages are signed with."}
	}
	keyword := func() key {
		return key{path: "keyword", kind: kindText, form: oneLine, doc: "A word that the robot demands in each message."}
	}
	return slices.Concat(
		[]key{
			{path: "notify", kind: kindList, def: "[]", doc: "Who is told."},
			{path: "notify[]", kind: kindMap, oneOf: true, doc: "One channel: one of its keys."},
		},
		channel("webhook", "Any HTTP endpoint.", secret(), tokenEnv(), headers()),
		channel("slack", "Slack."),
		channel("feishu", "Feishu.", secret(), keyword()),
		channel("dingtalk", "DingTalk.", secret(), keyword()),
		channel("wecom", "WeCom."),
		channel("alertmanager", "Alertmanager.", tokenEnv(), key{path: "labels", kind: kindPairs, names: labelName, form: oneLine, doc: "More labels of the alert."}),
	)
}

func hookKeys() []key {
	tries := func() []key {
		return []key{
			{path: "tries", kind: kindCount, def: "5", min: "1", max: "100", doc: "How often it is tried in all."},
			timeout("30", "Of one try, seconds."),
		}
	}
	name := func() []key {
		return []key{{path: "name", kind: kindText, form: oneLine, doc: "What messages call it."}}
	}
	return slices.Concat(
		[]key{
			{path: "hooks", kind: kindMap, doc: "What else is done at a change, such as purging a cache."},
			{path: "hooks.on_rollback", kind: kindList, def: "[]", doc: "Done after the weight is back at 0."},
			{path: "hooks.on_rollback[]", kind: kindMap, oneOf: true, doc: "One action: one of its keys."},
			{path: "hooks.on_rollback[].http", kind: kindMap, blank: true, doc: "An HTTP request. `{ ... }` stands for one that is still to be written, and does nothing."},
		},
		at("hooks.on_rollback[].http", slices.Concat(name(), address("Its address."), []key{
			{path: "method", kind: kindEnum, def: "POST", words: methodWords, doc: "The method."},
			headers(), tokenEnv(),
			{path: "body", kind: kindText, doc: "What is sent. Left out: the rollback record as JSON."},
		}, tries())...),
		[]key{{path: "hooks.on_rollback[].exec", kind: kindMap, blank: true, doc: "A program. `{ ... }` as for http."}},
		at("hooks.on_rollback[].exec", slices.Concat(name(),
			command("command", true, "The program and its arguments, without a shell; gets the rollback record on standard input."), tries())...),
	)
}
