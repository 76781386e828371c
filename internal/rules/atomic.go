package rules

import "github.com/kuji-dev/kuji/internal/store"

// decideAtomic checks the members in order. If none fails, it writes their effects and chooses the
// outcomes of their draws.
func (r *Rules) decideAtomic(cmd *Command) Status {
	w := r.w
	var f failure
	failed := 0
	for i := range cmd.Members {
		if f = r.check(&cmd.Members[i]); f.status != OK {
			failed = i
			break
		}
	}
	r.fail(f)
	w.BeginAsked()
	if f.status != OK {
		w.Uint(uint64(failed))
	}
	w.Uint(uint64(len(cmd.Members)))
	for i := range cmd.Members {
		m := &cmd.Members[i]
		w.Buf = append(w.Buf, byte(m.Kind))
		w.Ref(r.playerRef(m.Player, f.status))
		r.ask(m, f.status)
	}
	cmd.Note.write(w)
	w.EndAsked()
	if f.status == OK {
		r.player = noPlayer
		r.values.reset()
		draws := 0
		for i := range cmd.Members {
			w.More(store.Member)
			r.pool = noPool
			r.write(&cmd.Members[i], draws)
			if cmd.Members[i].Kind == KindDraw {
				draws++
			}
		}
	}
	w.End()
	return f.status
}
