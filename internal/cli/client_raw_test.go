package cli

import (
	"net/http"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
)

// rawClient calls a server once: what fails, fails.
type rawClient struct {
	rewards kujiv1connect.RewardServiceClient
	admin   kujiv1connect.AdminServiceClient
}

func newClient(h *http.Client, url, _ string, o ...connect.ClientOption) *rawClient {
	return &rawClient{kujiv1connect.NewRewardServiceClient(h, url, o...), kujiv1connect.NewAdminServiceClient(h, url, o...)}
}
