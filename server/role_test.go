package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

// fakeService describes a service of methods with the given options.
func fakeService(t *testing.T, methods map[string]*descriptorpb.MethodOptions) protoreflect.ServiceDescriptor {
	t.Helper()
	service := &descriptorpb.ServiceDescriptorProto{Name: proto.String("FakeService")}
	for name, o := range methods {
		service.Method = append(service.Method, &descriptorpb.MethodDescriptorProto{
			Name: proto.String(name), InputType: proto.String(".kuji.v1.DrawRequest"), OutputType: proto.String(".kuji.v1.DrawResponse"), Options: o,
		})
	}
	f, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("fake.proto"), Package: proto.String("kuji.v1.fake"), Syntax: proto.String("proto3"),
		Dependency: []string{"kuji/v1/draw.proto"}, Service: []*descriptorpb.ServiceDescriptorProto{service},
	}, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	return f.Services().Get(0)
}

func TestNoRoleNoServer(t *testing.T) {
	engine := newEngine(t, kuji.Options{})
	declared := &descriptorpb.MethodOptions{}
	proto.SetExtension(declared, kujiv1.E_Role, kujiv1.Role_ROLE_READ)
	zero := &descriptorpb.MethodOptions{}
	proto.SetExtension(zero, kujiv1.E_Role, kujiv1.Role_ROLE_UNSPECIFIED)
	unknown := &descriptorpb.MethodOptions{}
	proto.SetExtension(unknown, kujiv1.E_Role, kujiv1.Role(99))
	for _, tt := range []struct {
		name    string
		methods map[string]*descriptorpb.MethodOptions
		want    string
	}{
		{"no options", map[string]*descriptorpb.MethodOptions{"A": nil}, "kuji.v1.fake.FakeService.A"},
		{"other options", map[string]*descriptorpb.MethodOptions{"A": {Deprecated: proto.Bool(true)}}, "kuji.v1.fake.FakeService.A"},
		{"unspecified", map[string]*descriptorpb.MethodOptions{"A": zero}, "FakeService.A"},
		{"unknown role", map[string]*descriptorpb.MethodOptions{"A": unknown}, "FakeService.A"},
		{"two of three", map[string]*descriptorpb.MethodOptions{"B": nil, "A": nil, "C": declared}, "FakeService.A, kuji.v1.fake.FakeService.B:"},
		{"declared but not served", map[string]*descriptorpb.MethodOptions{"A": declared}, "nothing serves"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			services := append(server.Contract(), fakeService(t, tt.methods))
			_, err := server.NewWithContract(engine, server.Options{Logger: quiet()}, services)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want an error with %q", err, tt.want)
			}
		})
	}
}

// TestRolesOfTheContract is the list of who may do what, written down a second
// time: a change of a role in the contract must be made here too.
func TestRolesOfTheContract(t *testing.T) {
	want := map[string]kujiv1.Role{}
	for role, names := range map[kujiv1.Role]string{
		kujiv1.Role_ROLE_WRITE: "RewardService/Draw RewardService/Redeem RewardService/Register RewardService/Grant RewardService/Consume RewardService/Transfer RewardService/Progress RewardService/Claim RewardService/Collect RewardService/OpenRound RewardService/Join RewardService/Settle RewardService/Reroll RewardService/CancelRound RewardService/Confirm RewardService/Cancel RewardService/LinkCode RewardService/Link RewardService/Unlink RewardService/Atomic RewardService/Batch RewardService/StreamDraws ChatService/HandleMessage AdminService/Simulate AdminService/ProposeCatalog AdminService/WithdrawProposal AdminService/ApproveCatalog",
		kujiv1.Role_ROLE_READ:  "RewardService/GetResult RewardService/StreamEvents RewardService/GetHistory RewardService/ListPlayers RewardService/ListHolders RewardService/GetPlayer RewardService/ListQuests RewardService/ListRanks RewardService/GetRound RewardService/ListRounds RewardService/GetHold RewardService/ListHolds RewardService/GetPool RewardService/GetCatalog RewardService/GetOdds RewardService/ExportCatalog RewardService/ListCatalogs RewardService/ListDisplays RewardService/GetDisclosure RewardService/GetEpoch AdminService/ListRealms AdminService/GetStatus AdminService/GetCodes AdminService/ListSlow AdminService/ListNodes AdminService/ListProposals AdminService/GetProposal",
		kujiv1.Role_ROLE_ADMIN: "AdminService/ApplyCatalog AdminService/SetClock AdminService/FinishUpgrade AdminService/SetTrack AdminService/SetLimit AdminService/SetCounter AdminService/Merge AdminService/Forget AdminService/Block AdminService/Reverse AdminService/CreateRealm AdminService/DeleteRealm AdminService/ImportCodes AdminService/ExportCodes AdminService/Backup AdminService/ListKeys",
		kujiv1.Role_ROLE_ANY:   "RewardService/GetAccess",
	} {
		for _, name := range strings.Fields(names) {
			want["/kuji.v1."+name] = role
		}
	}
	want["/events"] = kujiv1.Role_ROLE_READ
	want["/grpc.health.v1.Health/Check"] = kujiv1.Role_ROLE_UNSPECIFIED
	want["/grpc.health.v1.Health/Watch"] = kujiv1.Role_ROLE_UNSPECIFIED
	want["/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"] = kujiv1.Role_ROLE_READ
	want["/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"] = kujiv1.Role_ROLE_READ
	got := newServer(t, server.Options{}).server.RoleOf()
	for path, role := range want {
		if g, ok := got[path]; !ok || g != role {
			t.Errorf("%s: role %v (served: %v), want %v", path, g, ok, role)
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s is served and not in the list", path)
		}
	}
}

// TestRoleMatrix calls every RPC with every key, in each way of presenting one.
func TestRoleMatrix(t *testing.T) {
	f := newServer(t, server.Options{Keys: keyFile(t)})
	roles := f.server.RoleOf()
	roles["/metrics"] = kujiv1.Role_ROLE_READ
	roles["/healthz"] = kujiv1.Role_ROLE_UNSPECIFIED
	roles["/readyz"] = kujiv1.Role_ROLE_UNSPECIFIED
	for path, need := range roles {
		for _, k := range []struct {
			name, header, value string
			role                kujiv1.Role
		}{
			{"none", "", "", 0},
			{"wrong", "Authorization", "Bearer wrong", 0},
			{"empty", "Authorization", "Bearer ", 0},
			{"basic", "Authorization", "Basic " + adminKey, 0},
			{"bare", "Authorization", adminKey, 0},
			{"longer than any", "Authorization", "Bearer " + adminKey + strings.Repeat("x", access.MaxKeyBytes), 0},
			{"read", "Authorization", "Bearer " + readKey, kujiv1.Role_ROLE_READ},
			{"write", "Authorization", "bearer  " + writeKey, kujiv1.Role_ROLE_WRITE},
			{"admin", "Authorization", "Bearer " + adminKey, kujiv1.Role_ROLE_ADMIN},
			{"read by header", "X-Api-Key", readKey, kujiv1.Role_ROLE_READ},
			{"admin by header", "X-Api-Key", adminKey, kujiv1.Role_ROLE_ADMIN},
		} {
			t.Run(fmt.Sprintf("%s/%s", strings.TrimPrefix(path, "/"), k.name), func(t *testing.T) {
				method := http.MethodPost
				if !strings.Contains(path[1:], "/") {
					method = http.MethodGet
				}
				r := httptest.NewRequest(method, path, strings.NewReader(`{"bad json`))
				r.Header.Set("Content-Type", "application/json")
				if k.header != "" {
					r.Header.Set(k.header, k.value)
				}
				w := httptest.NewRecorder()
				f.server.ServeHTTP(w, r)
				passed := w.Code != 401 && w.Code != 403
				want := k.role >= need || need == kujiv1.Role_ROLE_ANY && k.role > 0
				if passed != want {
					t.Fatalf("HTTP %d %s; passes: %v, want %v", w.Code, w.Body, passed, want)
				}
				if !want && (k.role == 0) != (w.Code == 401) {
					t.Errorf("HTTP %d for a key of role %v, want 401 only without a valid key", w.Code, k.role)
				}
			})
		}
	}
}
