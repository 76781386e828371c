package message

import (
	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/chat"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// ChatWork returns how many bytes the results and the answer to a message of a chat need.
func ChatWork(outcomes int) int64 { return int64(outcomes) * outcomeBytes }

// Reply makes the answer to a message of a chat.
func Reply(r *chat.Reply) *kujiv1.HandleMessageResponse {
	return &kujiv1.HandleMessageResponse{Player: r.Player, Found: Each(r.Found, found)}
}

func found(f *chat.Found) *kujiv1.FoundTrigger {
	out := &kujiv1.FoundTrigger{Trigger: f.Trigger, Phrase: f.Phrase, State: kujiv1.TriggerState(f.State) + 1, Word: f.Word, Results: Each(f.Results, triggerResult)}
	if !f.Ready.IsZero() {
		out.ReadyUnixMs = f.Ready.UnixMilli()
	}
	return out
}

func triggerResult(res *kuji.Result) *kujiv1.TriggerResult {
	if res.Status == kuji.Refused {
		return &kujiv1.TriggerResult{Error: Refusal(res.Err)}
	}
	return &kujiv1.TriggerResult{Result: Result(res)}
}
