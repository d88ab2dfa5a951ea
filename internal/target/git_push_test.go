package target

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/release"
)

func changeToSlots(slots, ring int64) release.Weight { return release.Weight{Slots: slots, Ring: ring} }

// What servers answer to a push, as they print it.
func TestGitTellsServersAnswersApart(t *testing.T) {
	const main = "!\tabc:refs/heads/main\t"
	for _, tt := range []struct {
		server, answer, said string
		want                 any
	}{
		{"git, the client saw it", main + "[rejected] (fetch first)", "error: failed to push some refs to 'x'\nhint: Updates were rejected", &gitMoved{}},
		{"git, known commit", main + "[rejected] (non-fast-forward)", "", &gitMoved{}},
		{"git, with a lease", main + "[rejected] (stale info)", "", &gitMoved{}},
		{"git, if included", main + "[rejected] (remote ref updated since checkout)", "", &gitMoved{}},
		{"git and GitHub, in a race", main + "[remote rejected] (cannot lock ref 'refs/heads/main': is at 66941e6 but expected cdec693)", "", &gitMoved{}},
		{"git, older", main + "[remote rejected] (failed to lock)", "", &gitMoved{}},
		{"git 2.30 on", main + "[remote rejected] (failed to update ref)", "", &gitMoved{}},
		{"git 2.50 on, GitLab", main + "[remote rejected] (incorrect old value provided)", "", &gitMoved{}},
		{"git, new branch in a race", main + "[remote rejected] (reference already exists)", "", &gitMoved{}},
		{"JGit, Gerrit", main + "[remote rejected] (lock failure)", "", &gitMoved{}},
		{"JGit", main + "[remote rejected] (non-fast forward)", "", &gitMoved{}},
		{"Azure Repos, in a race", main + "[remote rejected] (TF401028: The reference 'refs/heads/main' has already been updated by another client, so you cannot update it. Please try again.)", "", &gitMoved{}},

		{"GitHub, protected", main + "[remote rejected] (protected branch hook declined)", "remote: error: GH006: Protected branch update failed for refs/heads/main.\nremote: error: Changes must be made through a pull request.", "mode: branch"},
		{"GitHub, ruleset", main + "[remote rejected] (push declined due to repository rule violations)", "remote: error: GH013: Repository rule violations found for refs/heads/main.", "mode: branch"},
		{"GitLab, protected", main + "[remote rejected] (pre-receive hook declined)", "remote: GitLab: You are not allowed to push code to protected branches on this project.", "mode: branch"},
		{"Gitea, Forgejo", main + "[remote rejected] (pre-receive hook declined)", "remote: Forgejo: Not allowed to push to protected branch main", "mode: branch"},
		{"Bitbucket Cloud", main + "[remote rejected] (pre-receive hook declined)", "remote: permission denied to update branch main", "mode: branch"},
		{"Bitbucket Data Center", main + "[remote rejected] (pre-receive hook declined)", "remote: Branch refs/heads/main can only be modified through pull requests.", "mode: branch"},
		{"Azure Repos", main + "[remote rejected] (TF402455: Pushes to this branch are not permitted; you must use a pull request to update this branch.)", "", "mode: branch"},
		{"Gerrit", main + "[remote rejected] (prohibited by Gerrit: not permitted: update)", "", "mode: branch"},
		{"a hook of one's own", main + "[remote rejected] (hook declined)", "remote: no Fridays", "mode: branch"},
		{"a clone as the remote", main + "[remote rejected] (branch is currently checked out)", "", "bare"},
		{"a name that cannot be", main + "[remote rejected] (cannot lock ref 'refs/heads/a/b': 'refs/heads/a' exists; cannot create 'refs/heads/a/b')", "", "work_branch"},
		{"a reason of its own", main + "[remote rejected] (commits on a Sunday)", "", "the server's answer"},

		{"GitHub, no permission", "", "remote: Permission to o/r.git denied to bot.\nfatal: unable to access 'https://u:p@h/r/': The requested URL returned error: 403", "token"},
		{"GitHub, read-only key", "", "ERROR: The key you are authenticating with has been marked as read only.\nfatal: Could not read from remote repository.", "token"},
		{"archived", "", "remote: This repository was archived so it is read-only.\nfatal: unable to access 'https://h/r/': The requested URL returned error: 403", "token"},
		{"GitLab, no token", "", "remote: HTTP Basic: Access denied.\nfatal: Authentication failed for 'https://h/r/'", "token"},
		{"nobody to ask", "", "fatal: could not read Username for 'https://h': terminal prompts disabled", "token"},
		{"SSH key", "", "git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.", "token"},
		{"SSH host", "", "Host key verification failed.\nfatal: Could not read from remote repository.", "token"},
		{"no such repository", "", "remote: Repository not found.\nfatal: repository 'https://h/r/' not found", "git remote -v"},
		{"no such directory", "", "fatal: '/srv/x.git' does not appear to be a git repository\nfatal: Could not read from remote repository.", "git remote -v"},

		{"no name", "", "fatal: unable to access 'https://h/r/': Could not resolve host: h", &UnreachableError{}},
		{"nobody listens", "", "ssh: connect to host h port 22: Connection refused\nfatal: Could not read from remote repository.", &UnreachableError{}},
		{"broken off", "", "error: RPC failed; curl 52 Empty reply from server\nfatal: the remote end hung up unexpectedly", &UnreachableError{}},
		{"no report", main + "[remote failure] (remote failed to report status)", "", &UnreachableError{}},
		{"server's disk", main + "[remote rejected] (unpacker error)", "error: remote unpack failed: index-pack abnormal exit", &UnreachableError{}},
		{"GitHub, down", main + "[remote rejected] (Internal Server Error)", "remote: Internal Server Error", &UnreachableError{}},
		{"503", "", "fatal: unable to access 'https://h/r/': The requested URL returned error: 503", &UnreachableError{}},
		{"something new", "", "fatal: the moon is in the way", &UnreachableError{}},
	} {
		g := &git{name: "git main:x", branch: "main"}
		err := g.pushFailure(&gitError{verb: "push", answer: "To http://h\n" + tt.answer + "\nDone\n", said: withoutHints(tt.said), err: errors.New("exit status 1")})
		switch want := tt.want.(type) {
		case string:
			if refused, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(refused.Hint, want) {
				t.Errorf("%s: %T %v; want a refusal whose hint has %q", tt.server, err, err, want)
			}
		default:
			if fmt.Sprintf("%T", err) != fmt.Sprintf("%T", want) {
				t.Errorf("%s: %T %v; want %T", tt.server, err, err, want)
			}
		}
		if strings.Contains(fmt.Sprint(err), "u:p@") {
			t.Errorf("%s: credentials in %v", tt.server, err)
		}
	}
}
