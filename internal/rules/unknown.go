package rules

// A command that names a pool, an item or a track that the catalog in force does not have is
// refused before it is decided. It leaves no event, so that neither a typing error nor a draw that
// comes before its catalog uses up a request id.

// Unknown returns what a command names that the catalog in force does not have, or nil. The command
// must have passed Check.
func (r *checks) Unknown(cmd *Command) *CommandError {
	return cmd.Kind.of().unknown(r, cmd)
}

func (r *checks) unknown(field, noun, id string) *CommandError {
	if r.t.Version == 0 {
		return malformed(field, "there is no %s %q: the realm has no catalog yet", noun, id)
	}
	return malformed(field, "there is no %s %q in catalog version %d", noun, id, r.t.Version)
}
