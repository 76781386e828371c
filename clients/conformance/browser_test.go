package conformance

import (
	"context"
	"encoding/json"
	"html/template"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// page draws as a player's page does, with a token, and writes what came of it.
var page = template.Must(template.New("").Parse(`<!doctype html>
{{.Imports}}
<script>globalThis.said = new Promise((resolve) => { globalThis.tell = resolve; });</script>
<script type="module">
import { Client, KujiError, newId, Status, UnknownError } from "/dist/index.js";
const said = [];
try {
  const client = new Client({{.URL}}, { key: {{.Token}} });
  const requestId = newId();
  for (let i = 0; i < 2; i++) {
    const { result } = await client.draw({ requestId, player: {{.Player}}, pool: "hats" });
    said.push(Status[result.status], typeof result.receipt.position, result.replayed);
  }
  const batch = await client.batch({ commands: ["hats", "shop", "hats"].map((pool) => ({ command: { case: "draw", value: { player: {{.Player}}, pool } } })) });
  said.push(...batch.results.map((r) => Status[r.status]));
  const { player } = await client.getPlayer({ player: {{.Player}} });
  said.push(player.items.map((i) => i.item + "=" + i.quantity).join());
  await client.draw({ player: "somebody else", pool: "hats" }).catch((e) => said.push(e instanceof KujiError, e.reason));
  const away = new Client({{.Away}}, { timeout: 300 });
  await away.draw({ requestId: "the-id", player: "ann", pool: "hats" }).catch((e) => said.push(e instanceof UnknownError, e.requestIds.join()));
  let draws = 0;
  for await (const { events } of client.events({ player: {{.Player}}, from: 1n })) {
    draws += events.filter((e) => e.kind === "draw" && e.status === Status.OK).length;
    if (draws >= 3) break;
  }
  said.push(draws);
} catch (e) {
  said.push(String(e), e.stack);
}
tell(said.join(" "));
</script>`))

// imports is the import map for modules of npm, of what their packages say that they export.
func imports(t *testing.T, modules string) template.HTML {
	t.Helper()
	all := map[string]string{}
	for _, name := range []string{"@bufbuild/protobuf", "@connectrpc/connect", "@connectrpc/connect-web"} {
		data, err := os.ReadFile(filepath.Join(modules, name, "package.json"))
		if err != nil {
			t.Fatal(err)
		}
		var pkg struct {
			Exports map[string]struct{ Import string }
		}
		if err := json.Unmarshal(data, &pkg); err != nil {
			t.Fatal(err)
		}
		for export, to := range pkg.Exports {
			all[path.Join(name, export)] = path.Join("/node_modules", name, to.Import)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return template.HTML(`<script type="importmap">{"imports": ` + string(text) + `}</script>`) // it has paths alone
}

// TestBrowser: in a real browser, on a page of another site, the TypeScript client draws with a player's token.
func TestBrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("left out: no chromium here: apt-get install chromium")
	}
	home := filepath.Join(os.Getenv("KUJI_CLIENTS"), "typescript")
	if !filepath.IsAbs(home) || !exists(home) {
		t.Skip("left out: KUJI_CLIENTS has no typescript; clients/install.sh DIR installs it")
	}
	values := map[string]any{"Imports": imports(t, filepath.Join(home, "node_modules")), "Player": "ブラウザ", "Away": away(t)}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(home)))
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if err := page.Execute(w, values); err != nil {
			t.Error(err)
		}
	})
	site := listen(t, mux)
	w := newWorld(t, "--allow-origin", site)
	values["URL"], values["Token"] = w.keyed.url(), w.token(t, "ブラウザ")
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browser), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true))...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(site+"/page")); err != nil {
		t.Fatal(err)
	}
	said, err := chromedp.Run(ctx, chromedp.Evaluate[string]("globalThis.said", chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	const want = "OK bigint false OK bigint true OK INSUFFICIENT_ITEMS OK hat=3 true REASON_FORBIDDEN true the-id 3"
	if said != want {
		t.Errorf("the page says %q, want %q", said, want)
	}
}
