package rules

// Unknown returns what a command names that the catalog in force does not have, or nil. Such a
// command is refused and leaves no event. So a typing error, or a draw before its catalog, uses up no
// request id. The command must have passed Check.
func (r *checks) Unknown(cmd *Command) *CommandError {
	return cmd.Kind.of().unknown(r, cmd)
}

func (r *checks) unknown(field, noun, id string) *CommandError {
	if r.t.Version == 0 {
		return malformed(field, "there is no %s %q: the realm has no catalog yet", noun, id)
	}
	return malformed(field, "there is no %s %q in catalog version %d", noun, id, r.t.Version)
}
