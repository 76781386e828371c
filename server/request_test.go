package server_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/contract"
	"github.com/kuji-dev/kuji/server/internal/message"
)

// TestRequestOfEachMessage: each command becomes the request of its name, in its RPC and in a batch, and
// no other request of the API is taken for a command because it has the same fields.
func TestRequestOfEachMessage(t *testing.T) {
	want := map[string]string{"SetTrackRequest": "*kuji.SetTrack"} // which no batch can have
	made := func(m proto.Message) string { return fmt.Sprintf("%T", message.Request("", m, kuji.Note{})) }
	for _, k := range contract.Commands() {
		name := string(k.Message.Descriptor().Name())
		want[name+"Request"] = "*kuji." + name
		if got := made(k.Message.New().Interface()); got != "*kuji."+name {
			t.Errorf("%s of a batch becomes %s", name, got)
		}
	}
	for _, service := range contract.Services() {
		for i := range service.Methods().Len() {
			in := service.Methods().Get(i).Input()
			if !strings.HasPrefix(string(in.FullName()), "kuji.") {
				continue
			}
			kind, err := protoregistry.GlobalTypes.FindMessageByName(in.FullName())
			if err != nil {
				t.Fatal(err)
			}
			wanted := want[string(in.Name())]
			if wanted == "" {
				wanted = "<nil>"
			}
			if got := made(kind.New().Interface()); got != wanted {
				t.Errorf("%s becomes %s, want %s", in.Name(), got, wanted)
			}
		}
	}
}
