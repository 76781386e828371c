package cli

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// TestEveryFieldOfAGroup: a field of another kind that somebody adds to a command
// has to be read.
func TestEveryFieldOfAGroup(t *testing.T) {
	seen := map[protoreflect.FullName]bool{}
	var walk func(m protoreflect.MessageDescriptor)
	walk = func(m protoreflect.MessageDescriptor) {
		if seen[m.FullName()] {
			return
		}
		seen[m.FullName()] = true
		for i := range m.Fields().Len() {
			fd := m.Fields().Get(i)
			if fd.Kind() == protoreflect.MessageKind && !fd.IsMap() {
				walk(fd.Message())
				continue
			}
			if _, err := valueOf(fd, "1"); err != nil || fd.IsList() {
				t.Errorf("%s cannot be read: %v", fd.FullName(), err)
			}
		}
	}
	walk((&kujiv1.Atomic{}).ProtoReflect().Descriptor())
	if len(seen) < 6 {
		t.Errorf("walked %v", seen)
	}
}
