package contract

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// Services returns every service of package kuji.v1 that is linked in.
func Services() []protoreflect.ServiceDescriptor {
	var all []protoreflect.ServiceDescriptor
	pkg := kujiv1.File_kuji_v1_role_proto.Package()
	protoregistry.GlobalFiles.RangeFilesByPackage(pkg, func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			all = append(all, f.Services().Get(i))
		}
		return true
	})
	return all
}

// Administrators returns the requests that only administrators may make.
func Administrators() (all []protoreflect.FullName) {
	for m := range methods(Services()) {
		if roleOf(m) == kujiv1.Role_ROLE_ADMIN {
			all = append(all, m.Input().FullName())
		}
	}
	return all
}

// methods yields the RPCs of services.
func methods(services []protoreflect.ServiceDescriptor) iter.Seq[protoreflect.MethodDescriptor] {
	return func(yield func(protoreflect.MethodDescriptor) bool) {
		for _, service := range services {
			for i := range service.Methods().Len() {
				if !yield(service.Methods().Get(i)) {
					return
				}
			}
		}
	}
}

// roleOf returns the role that an RPC declares.
func roleOf(method protoreflect.MethodDescriptor) (role kujiv1.Role) {
	if o, ok := method.Options().(*descriptorpb.MethodOptions); ok && o != nil {
		role, _ = proto.GetExtension(o, kujiv1.E_Role).(kujiv1.Role)
	}
	return role
}

// Roles returns the role that each RPC declares, by path. The error names all without one.
func Roles(services []protoreflect.ServiceDescriptor) (map[string]kujiv1.Role, error) {
	roles := make(map[string]kujiv1.Role)
	var missing []string
	for method := range methods(services) {
		role := roleOf(method)
		if _, known := kujiv1.Role_name[int32(role)]; !known || role == kujiv1.Role_ROLE_UNSPECIFIED {
			missing = append(missing, string(method.FullName()))
			continue
		}
		roles["/"+string(method.Parent().FullName())+"/"+string(method.Name())] = role
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, fmt.Errorf("no role is declared for %s: each RPC needs option (kuji.v1.role)", strings.Join(missing, ", "))
	}
	return roles, nil
}
