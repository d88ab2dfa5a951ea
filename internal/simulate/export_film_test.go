package simulate

// Outcome is what Run or Replay would have returned.
func (f *Film) Outcome() *Outcome { return f.out }
