package slot_test

import (
	"fmt"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/slot"
)

func ExampleRouter_Route() {
	r := slot.Router{Ring: 100, ExcludeUsers: slot.SetOf("C-88001")}
	for _, user := range []string{"C-1001", "C-88001"} {
		a := r.Route(user, "", release.Weight{Slots: 30, Ring: 100})
		fmt.Println(user, a.Slot, a.Arm, a.Why)
	}
	// Output:
	// C-1001 19 canary slot
	// C-88001 37 stable excluded_user
}
