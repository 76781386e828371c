package sim

// Shrink looks for a smaller configuration that also breaks a promise: fewer kinds of faults,
// realms, lives, clients, requests, steps. It runs up to budget simulations and returns the
// smallest failure it found, or f itself.
func Shrink(f *Failure, budget int) *Failure {
	best := f
	try := func(change func(*Config)) bool {
		cfg := best.Config
		change(&cfg)
		if budget <= 0 || cfg == best.Config || cfg.Realms < 1 || cfg.Clients < 1 || cfg.Requests < 1 || cfg.Lives < 1 || cfg.Steps < 1 {
			return false
		}
		budget--
		if _, failure := Run(cfg); failure != nil {
			best = failure
			return true
		}
		return false
	}
	for again := true; again && budget > 0; {
		again = false
		for i := range faultNames {
			again = try(func(c *Config) { c.Faults &^= 1 << i }) || again
		}
		for _, part := range []func(*Config) *int{
			func(c *Config) *int { return &c.Realms },
			func(c *Config) *int { return &c.Lives },
			func(c *Config) *int { return &c.Clients },
			func(c *Config) *int { return &c.Requests },
			func(c *Config) *int { return &c.Steps },
		} {
			// Halves first, then one by one.
			for n := *part(&best.Config) / 2; n > 0; n /= 2 {
				for try(func(c *Config) { *part(c) -= n }) {
					again = true
				}
			}
		}
	}
	return best
}
