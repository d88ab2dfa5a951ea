package slot

import (
	"fmt"
	"strings"

	"github.com/canaryctl/canaryctl/internal/release"
)

// VectorFile is the file of test vectors with which a gateway in another
// language proves that it routes as canaryctl does. Hashes are text, because
// 64 bits do not fit the numbers of every JSON reader.
type VectorFile struct {
	Schema  int      `json:"schema"`
	Rule    string   `json:"rule"`
	Shares  []Share  `json:"shares"`
	Vectors []Vector `json:"vectors"`
	Routes  Routes   `json:"routes"`
}

// Share is a share of traffic as a decimal and as slots of each ring.
type Share struct {
	Pct   string `json:"pct"`
	Ring  int64  `json:"ring"`
	Slots int64  `json:"slots"` // round_half_even(pct x ring)
}

// Vector is one user id: its hash, its slot on each ring, and the shares (of
// VectorFile.Shares, on that ring) at which the slot alone puts it on the canary.
type Vector struct {
	User  string   `json:"user"`
	Hash  string   `json:"hash"` // the first 8 bytes of SHA-256, 16 hexadecimal digits
	Rings []OnRing `json:"rings"`
}

// OnRing is a user's place on one ring.
type OnRing struct {
	Ring   int64    `json:"ring"`
	Slot   int64    `json:"slot"`
	Canary []string `json:"canary_at"` // shares at which the user is on the canary
	Stable []string `json:"stable_at"` // shares at which it is not
}

// Routes are cases for the lists: excluded beats included beats slot, and
// weight 0 beats included.
type Routes struct {
	Ring            int64    `json:"ring"`
	ExcludeUsers    []string `json:"exclude_user_ids"`
	ExcludeSegments []string `json:"exclude_segments"`
	IncludeUsers    []string `json:"include_user_ids"`
	Cases           []Case   `json:"cases"`
}

// Case is one answer under the lists of Routes.
type Case struct {
	User    string `json:"user"`
	Segment string `json:"segment"`
	Pct     string `json:"pct"`
	Answer
}

const vectorRule = "slot = first 8 bytes of SHA-256(user id as UTF-8) as a big-endian unsigned integer, modulo ring; " +
	"on the canary iff slot < round_half_even(pct x ring); excluded beats included beats slot; at pct 0 nobody is on the canary"

var (
	vectorRings  = []int64{100, 1000, 10000}
	vectorShares = []string{"0", "0.005", "0.01", "0.015", "0.025", "0.05", "0.1", "0.3", "0.5", "0.995", "1"}
)

// vectorUsers are ids that implementations get wrong: empty, blanks, letter
// case, one letter composed in two ways, beyond the basic plane, longer than a
// hash block, zero bytes, and digits that a careless reader takes for a number.
func vectorUsers() []string {
	users := []string{
		"", " ", "0", "1", "007", "42", "9007199254740993", "C-88001", "C-88002", "c-88001", " C-88001", "C-88001\n",
		"alice@example.com", "ALICE@example.com", "550e8400-e29b-41d4-a716-446655440000",
		"\u00e9", "e\u0301", "用户-17", "пользователь", "👩\u200d🚀", "\u0000", "a\u0000b", "tab\tquote\"back\\slash/<&>",
		strings.Repeat("a", 55), strings.Repeat("a", 56), strings.Repeat("a", 64), strings.Repeat("long-", 200),
	}
	for i := range 40 {
		users = append(users, fmt.Sprintf("user-%04d", i))
	}
	return users
}

// Vectors returns the test vectors. They never change for a given schema.
func Vectors() VectorFile {
	f := VectorFile{Schema: 1, Rule: vectorRule, Routes: vectorRoutes()}
	for _, ring := range vectorRings {
		for _, pct := range vectorShares {
			f.Shares = append(f.Shares, Share{Pct: pct, Ring: ring, Slots: Below(release.MustRatio(pct), ring)})
		}
	}
	for _, user := range vectorUsers() {
		v := Vector{User: user, Hash: fmt.Sprintf("%016x", hash(user))}
		for _, ring := range vectorRings {
			v.Rings = append(v.Rings, place(user, ring))
		}
		f.Vectors = append(f.Vectors, v)
	}
	return f
}

func place(user string, ring int64) OnRing {
	on := OnRing{Ring: ring, Slot: Of(user, ring), Canary: []string{}, Stable: []string{}}
	for _, pct := range vectorShares {
		if on.Slot < Below(release.MustRatio(pct), ring) {
			on.Canary = append(on.Canary, pct)
		} else {
			on.Stable = append(on.Stable, pct)
		}
	}
	return on
}

func vectorRoutes() Routes {
	f := Routes{
		Ring:            100,
		ExcludeUsers:    []string{"C-88001", "both"},
		ExcludeSegments: []string{"finance"},
		IncludeUsers:    []string{"staff-1", "both"},
	}
	r := Router{Ring: f.Ring, ExcludeUsers: SetOf(f.ExcludeUsers...), ExcludeSegments: SetOf(f.ExcludeSegments...), IncludeUsers: SetOf(f.IncludeUsers...)}
	for _, who := range [][2]string{{"C-88001", ""}, {"user-0001", "finance"}, {"user-0001", ""}, {"user-0001", "retail"}, {"staff-1", ""}, {"staff-1", "finance"}, {"both", ""}, {"", ""}} {
		for _, pct := range []string{"0", "0.01", "1"} {
			w := release.Weight{Slots: Below(release.MustRatio(pct), f.Ring), Ring: f.Ring}
			f.Cases = append(f.Cases, Case{User: who[0], Segment: who[1], Pct: pct, Answer: r.Route(who[0], who[1], w)})
		}
	}
	return f
}
